import { readFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';
import {
  type BackendHost,
  type BackendModule,
  type BackendOptions,
  ConfigError,
  InvalidArgumentError,
  type LockBackend,
} from '@holdfast/core';
import { noop } from 'cockatiel';
import { Etcd3 } from 'etcd3';
import { EtcdBackend } from './backend.js';
import { endingAfter } from './call.js';
import type { Endpoint, EtcdClient } from './client.js';

/** A certificate or key: PEM text, its bytes, or the path of a PEM file. */
export type Pem = string | Buffer;

/** How to reach the servers: with a client of yours, or by URL, or by hosts. */
export interface EtcdBackendOptions {
  /** A client of etcd3, which stays yours to close. Its own retries and circuit breakers stay in force. */
  readonly client?: EtcdClient;
  /** `etcd://user:password@h1:2379,h2:2379`, or `etcds://…` for TLS. */
  readonly url?: string;
  /** `h1:2379`, `http://h1:2379`, or `https://h1:2379` for TLS. The port's default is 2379. */
  readonly hosts?: string | readonly string[];
  /** 1 to 64 of `A-Z a-z 0-9 . _ -`. Every key of ours begins with it and a slash. Default `holdfast`. */
  readonly prefix?: string;
  readonly username?: string;
  readonly password?: string;
  /** Authority that signed the servers' certificates. Default: those that Node trusts. */
  readonly ca?: Pem;
  /** Our certificate, where the server asks for one. */
  readonly cert?: Pem;
  /** The private key of `cert`. */
  readonly key?: Pem;
  /** The name that the servers' certificates must have. Default: the host that was dialled. */
  readonly serverName?: string;
}

/** URL schemes. */
export const schemes = ['etcd', 'etcds'] as const;

/** Options that a URL or a config may have besides `prefix`. */
export const options = {
  username: 'string',
  password: 'string',
  ca: 'string',
  cert: 'string',
  key: 'string',
  serverName: 'string',
} as const;

/** etcd3 documents no URL parameters. */
export const driverParameters: readonly string[] = [];

/** Makes a backend from a checked configuration, for `connect()`. */
export function createBackend(configured: BackendOptions): LockBackend {
  return etcdBackend(configured as EtcdBackendOptions);
}

/** This package as `connect()` sees it: `connect(config, { backends: [etcd] })`. */
export const etcd: BackendModule = { schemes, options, driverParameters, createBackend };

/**
 * Locks on etcd 3.4 or later, for `createLocks`.
 *
 * ```ts
 * const locks = await createLocks(etcdBackend({ hosts: ['h1:2379', 'h2:2379', 'h3:2379'] }));
 * ```
 *
 * @throws InvalidArgumentError, or ConfigError for a URL that cannot be used
 */
export function etcdBackend(given: EtcdBackendOptions): EtcdBackend {
  const { client, prefix = 'holdfast' } = given;
  checkPrefix(prefix);
  if (client !== undefined) return new EtcdBackend(prefix, () => [handedIn(client)]);
  const target = targetOf(given);
  return new EtcdBackend(prefix, (host) => target.hosts.map((name) => new OwnEndpoint(name, target, host)));
}

/** Where to connect to, and how. */
export interface Target {
  /** `host:port` */
  readonly hosts: readonly string[];
  readonly tls: boolean;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly credentials?: Credentials | undefined;
  readonly serverName?: string | undefined;
}

interface Credentials {
  readonly rootCertificate: Buffer;
  readonly certChain?: Buffer;
  readonly privateKey?: Buffer;
}

/** @throws ConfigError, InvalidArgumentError */
export function targetOf({
  url,
  hosts,
  username,
  password,
  serverName,
  ...pems
}: EtcdBackendOptions): Target {
  if (url !== undefined && hosts !== undefined) {
    throw new InvalidArgumentError('hosts', hosts, 'either url or hosts, not both');
  }
  const place = url === undefined ? hostsOf(hosts ?? '127.0.0.1:2379') : parseUrl(url);
  const credentials = credentialsOf(pems);
  const user = username ?? place.username;
  const secret = password ?? place.password;
  if ((user === undefined) !== (secret === undefined)) {
    throw new ConfigError('etcd: a username needs a password, and a password a username');
  }
  const tls = place.tls || credentials !== undefined;
  return { hosts: place.hosts, tls, username: user, password: secret, credentials, serverName };
}

type Place = Pick<Target, 'hosts' | 'tls' | 'username' | 'password'>;

/** Several hosts with ports are no URL to a WHATWG parser: it is taken apart as text. The password is never shown. */
function parseUrl(url: string): Place {
  const parts = /^(etcds?):\/\/(?:([^@/?#]*)@)?([^/?#]*)\/?(?:\?([^#]*))?$/i.exec(url);
  if (parts === null)
    throw new ConfigError('etcd.url is not of the form etcd://user:password@h1:2379,h2:2379');
  const { 1: scheme = '', 2: userInfo, 3: hosts = '', 4: query = '' } = parts;
  if (query !== '')
    throw new ConfigError(
      `etcd.url has parameters that nobody knows: ${[...new URLSearchParams(query).keys()].join(', ')}`,
    );
  const [username, ...password] = userInfo?.split(':') ?? [];
  return {
    hosts: hosts.split(',').map(hostOf),
    tls: scheme.toLowerCase() === 'etcds',
    username: username === undefined ? undefined : decode(username),
    password: username === undefined ? undefined : decode(password.join(':')),
  };
}

function hostsOf(hosts: string | readonly string[]): Place {
  const list = typeof hosts === 'string' ? hosts.split(',') : hosts;
  if (list.length === 0) throw new InvalidArgumentError('hosts', hosts, 'at least one host');
  const secure = list.filter((host) => host.startsWith('https://')).length;
  if (secure !== 0 && secure !== list.length) {
    throw new InvalidArgumentError('hosts', hosts, 'all with https:// or none: TLS is for all of them');
  }
  return { hosts: list.map((host) => hostOf(host.replace(/^https?:\/\//, ''))), tls: secure > 0 };
}

function hostOf(text: string): string {
  const parts = /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s@/]+)(?::(\d{1,5}))?$/.exec(text.trim());
  if (parts === null)
    throw new ConfigError(`etcd: ${JSON.stringify(text)} is not of the form host or host:port`);
  return `${parts[1]}:${parts[2] ?? '2379'}`;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new ConfigError('etcd.url has a user or password that is not percent-encoded');
  }
}

function credentialsOf({
  ca,
  cert,
  key,
}: Pick<EtcdBackendOptions, 'ca' | 'cert' | 'key'>): Credentials | undefined {
  if ((cert === undefined) !== (key === undefined))
    throw new ConfigError('etcd: cert needs key, and key needs cert');
  if (ca === undefined && cert === undefined) return undefined;
  return {
    rootCertificate: ca === undefined ? Buffer.from(rootCertificates.join('\n')) : pem('ca', ca),
    ...(cert === undefined || key === undefined
      ? {}
      : { certChain: pem('cert', cert), privateKey: pem('key', key) }),
  };
}

function pem(option: string, given: Pem): Buffer {
  if (typeof given !== 'string') return given;
  if (given.includes('-----BEGIN ')) return Buffer.from(given);
  try {
    return readFileSync(given);
  } catch (error) {
    throw new ConfigError(`etcd.${option} names the file ${JSON.stringify(given)}, which cannot be read`, {
      cause: error,
    });
  }
}

function checkPrefix(prefix: unknown): void {
  if (typeof prefix === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(prefix)) return;
  throw new InvalidArgumentError('prefix', prefix, '1 to 64 of A-Z a-z 0-9 . _ -');
}

function handedIn(client: EtcdClient): Endpoint {
  return { name: 'etcd', client, renew: () => undefined, close: () => undefined };
}

/** A client of our own for a single member. */
class OwnEndpoint implements Endpoint {
  readonly name: string;
  readonly #target: Target;
  readonly #host: BackendHost;
  #client: Etcd3;

  constructor(name: string, target: Target, host: BackendHost) {
    this.name = name;
    this.#target = target;
    this.#host = host;
    this.#client = this.#connect();
  }

  get client(): Etcd3 {
    return this.#client;
  }

  renew(): void {
    this.#client.close();
    this.#client = this.#connect();
  }

  close(): void {
    this.#client.close();
  }

  #connect(): Etcd3 {
    const { tls, credentials, username, password, serverName } = this.#target;
    const { clock, commandTimeout } = this.#host;
    return new Etcd3({
      hosts: `${tls ? 'https' : 'http'}://${this.name}`,
      ...(credentials === undefined ? {} : { credentials }),
      ...(username === undefined || password === undefined
        ? {}
        : { auth: { username, password, callOptions: () => ({ ...endingAfter(clock, commandTimeout) }) } }),
      // etcd3 would send a transaction three times by itself, and shut a host out for five seconds.
      faultHandling: { global: noop, host: () => noop },
      grpcOptions: {
        // Shared connections would outlive a client that was made anew because its connection was half dead.
        'grpc.use_local_subchannel_pool': 1,
        'grpc.enable_retries': 0,
        'grpc.initial_reconnect_backoff_ms': 100,
        'grpc.max_reconnect_backoff_ms': 1_000,
        // More often than every 5 s a server hangs up.
        'grpc.keepalive_time_ms': 10_000,
        'grpc.keepalive_timeout_ms': 5_000,
        ...(serverName === undefined
          ? {}
          : { 'grpc.ssl_target_name_override': serverName, 'grpc.default_authority': serverName }),
      },
    });
  }
}
