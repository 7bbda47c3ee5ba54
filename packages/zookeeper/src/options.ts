import { isIP } from 'node:net';
import {
  type BackendOptions,
  ConfigError,
  type Duration,
  InvalidArgumentError,
  type OptionType,
  parseDuration,
} from '@holdfast/core';

/** Who may touch our nodes: everyone, or those with our credentials. */
export type Acl = 'open' | 'creator';

/** One server of the ensemble. */
export interface Server {
  readonly host: string;
  readonly port: number;
}

/**
 * A client of node-zookeeper-client, typed by the one method that we call: its servers, chroot and credentials are
 * taken over. Its connection is left alone, since a lock needs a session of its own.
 */
export interface ZooKeeperClient {
  getSessionTimeout(): number;
}

/** Where ZooKeeper is, and how locks use it. One of `url` and `client` is needed. */
export interface ZooKeeperBackendOptions {
  /** `zookeeper://[user:password@]host[:port][,host[:port]…][/chroot]`; an IPv6 address in brackets. */
  readonly url?: string;
  /** Takes servers, chroot and credentials from this client, and leaves its connection alone. */
  readonly client?: ZooKeeperClient;
  /** Isolates tenants: the node under the chroot that holds everything. Default `holdfast`. */
  readonly prefix?: string;
  /**
   * How long the server keeps the nodes of a process that it does not hear from: how long a dead holder blocks others.
   * The server answers with what it allows, from 2 to 20 of its ticks unless configured. Default 10 s.
   */
  readonly sessionTimeout?: Duration;
  /** The node under which everything is kept, made when missing; in place of the URL's path. Default none. */
  readonly chroot?: string;
  /** `user:password` for the digest scheme; in place of the URL's. */
  readonly auth?: string;
  /** Who may touch the nodes. Default `creator` where there is a user, else `open`; `creator` needs a user. */
  readonly acl?: Acl;
}

/** The options by name, for `connect()`. */
export const options = {
  sessionTimeout: 'duration',
  chroot: 'string',
  auth: 'string',
  acl: 'string',
} as const satisfies Readonly<Record<string, OptionType>>;

/** The options, checked. */
export interface Settings {
  readonly servers: readonly Server[];
  readonly credentials: readonly { readonly scheme: string; readonly auth: Buffer }[];
  readonly sessionTimeout: number;
  readonly acl: Acl;
  /** The chroot and the prefix: the path under which everything is kept. */
  readonly root: string;
  readonly prefix: string;
}

const DEFAULT_PORT = 2181;
const DEFAULT_SESSION_TIMEOUT = 10_000;
/** A timeout crosses the wire in 32 bits. */
const LONGEST_SESSION = 2 ** 31 - 1;
const PREFIX = /^[A-Za-z0-9._-]{1,64}$/;

/** @throws ConfigError, InvalidArgumentError */
export function readOptions(given: ZooKeeperBackendOptions): Settings {
  const place = given.client === undefined ? readUrl(given.url) : readClient(given.client);
  const prefix = given.prefix ?? 'holdfast';
  if (typeof prefix !== 'string' || !PREFIX.test(prefix) || prefix === '.' || prefix === '..') {
    throw new InvalidArgumentError(
      'prefix',
      prefix,
      '1 to 64 of A-Z a-z 0-9 . _ -, and neither "." nor ".."',
    );
  }
  const credentials =
    given.auth === undefined ? place.credentials : [{ scheme: 'digest', auth: Buffer.from(given.auth) }];
  const chroot = given.chroot === undefined ? place.chroot : readChroot(given.chroot);
  return {
    servers: place.servers,
    credentials,
    sessionTimeout: parseDuration(given.sessionTimeout ?? place.sessionTimeout, 'sessionTimeout', {
      max: LONGEST_SESSION,
    }),
    acl: readAcl(given.acl, credentials.length > 0),
    root: `${chroot}/${prefix}`,
    prefix,
  };
}

/** What `connect()` checked by type. */
export function fromBackendOptions(given: BackendOptions): ZooKeeperBackendOptions {
  const { url, prefix, sessionTimeout, chroot, auth, acl } = given;
  return {
    ...(url === undefined ? {} : { url }),
    ...(prefix === undefined ? {} : { prefix }),
    ...(typeof sessionTimeout === 'number' ? { sessionTimeout } : {}),
    ...(typeof chroot === 'string' ? { chroot } : {}),
    ...(typeof auth === 'string' ? { auth } : {}),
    ...(acl === undefined ? {} : { acl: checkAcl(acl) }),
  };
}

interface Place {
  readonly servers: readonly Server[];
  readonly chroot: string;
  readonly credentials: readonly { readonly scheme: string; readonly auth: Buffer }[];
  readonly sessionTimeout: number;
}

/** Not `URL`: it refuses a list of hosts with ports. */
const ADDRESS = /^zookeeper:\/\/(?:([^/@]*)@)?([^/?#@]+)(\/[^?#]*)?$/;

function readUrl(url: string | undefined): Place {
  const match = ADDRESS.exec(url ?? '');
  if (match?.[2] === undefined) {
    // Not the URL itself: it may hold a password.
    throw new ConfigError(
      'the ZooKeeper URL cannot be read; expected zookeeper://[user:password@]host[:port][,host[:port]…][/chroot]',
    );
  }
  const servers = match[2].split(',').map(readServer);
  const chroot = readChroot(decode(match[3] ?? ''));
  const credentials =
    match[1] === undefined || match[1] === ''
      ? []
      : [{ scheme: 'digest', auth: Buffer.from(decode(match[1])) }];
  return { servers, chroot, credentials, sessionTimeout: DEFAULT_SESSION_TIMEOUT };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new ConfigError('the ZooKeeper URL holds a malformed percent escape', { cause });
  }
}

const SERVER = /^(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|([^\s:[\]]+))(?::(\d{1,5}))?$/;

function readServer(text: string): Server {
  const match = SERVER.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = match?.[3] === undefined ? DEFAULT_PORT : Number(match[3]);
  if (host === undefined || port < 1 || port > 65_535) {
    throw new ConfigError(
      `${JSON.stringify(text)} is not a ZooKeeper server; expected host, host:port or [IPv6]:port`,
    );
  }
  return { host, port };
}

/** `locks`, `/locks` and `/locks/` are one place. */
function readChroot(text: string): string {
  const parts = text.split('/').filter((part) => part !== '');
  if (parts.some((part) => part === '.' || part === '..' || /\p{Cc}/u.test(part))) {
    throw new ConfigError(
      `the chroot ${JSON.stringify(text)} is not a path in ZooKeeper: no ".", ".." or control characters`,
    );
  }
  return parts.map((part) => `/${part}`).join('');
}

function readAcl(value: unknown, authenticated: boolean): Acl {
  if (value === undefined) return authenticated ? 'creator' : 'open';
  if (value === 'creator' && !authenticated) {
    throw new InvalidArgumentError('acl', value, '"open", or a user and a password besides');
  }
  return checkAcl(value);
}

function checkAcl(value: unknown): Acl {
  if (value === 'open' || value === 'creator') return value;
  throw new InvalidArgumentError('acl', value, '"open" or "creator"');
}

/** The part of node-zookeeper-client 1.x that says where a client connects. */
interface ClientInsides {
  readonly connectionManager?: {
    readonly servers?: readonly { readonly host: string; readonly port: number | string }[];
    readonly chrootPath?: string;
    readonly credentials?: readonly { readonly scheme: string; readonly auth: Buffer }[];
  };
}

function readClient(client: ZooKeeperClient): Place {
  const manager = (client as ZooKeeperClient & ClientInsides).connectionManager;
  if (manager?.servers === undefined || typeof client.getSessionTimeout !== 'function') {
    throw new InvalidArgumentError('client', client, 'a client of node-zookeeper-client 1.x');
  }
  return {
    servers: manager.servers.map(({ host, port }) =>
      readServer(`${isIP(host) === 6 ? `[${host}]` : host}:${port}`),
    ),
    chroot: readChroot(manager.chrootPath ?? ''),
    credentials: manager.credentials ?? [],
    sessionTimeout: client.getSessionTimeout(),
  };
}
