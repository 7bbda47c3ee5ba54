import { ConfigError, InvalidArgumentError, type OptionType } from '@holdfast/core';
import * as ioredis from 'ioredis';
import type { AnyClient, Client } from './client.js';

/** How `redisBackend` is made. */
export interface RedisBackendOptions {
  /** `redis://`, `redis+sentinel://h1,h2/master`, `redis+cluster://h1,h2`, each with TLS as `rediss…`. */
  readonly url?: string;
  /** An ioredis `Redis` or `Cluster` instead of a URL: we connect as it does, and neither close nor change it. */
  readonly client?: AnyClient;
  /** Isolates tenants: 1 to 64 of `A-Z a-z 0-9 . _ -`. Default `holdfast`. */
  readonly prefix?: string;
  /** Replicas that must have a grant or a renewal before it counts. Default 0: none is asked. */
  readonly minReplicas?: number;
  /** ms that the replicas may take. Default 500. */
  readonly minReplicasTimeout?: number;
  /** The database. Default 0, or the URL's path. */
  readonly db?: number;
  readonly username?: string;
  readonly password?: string;
  /** For `redis+sentinel://`: what the sentinels themselves ask for. */
  readonly sentinelUsername?: string;
  readonly sentinelPassword?: string;
  /** Options of `tls.connect`, besides a `rediss` URL. */
  readonly tls?: object;
  /** Where nodes are seen from here: `{ '10.0.0.1:6379': { host, port } }`. */
  readonly natMap?: NatMap;
}

/** The options by name, for the config and for URLs. */
export const options: Readonly<Record<string, OptionType>> = {
  client: 'object',
  minReplicas: 'integer',
  minReplicasTimeout: 'duration',
  db: 'integer',
  username: 'string',
  password: 'string',
  sentinelUsername: 'string',
  sentinelPassword: 'string',
  tls: 'object',
  natMap: 'object',
  clients: 'object',
  maxTtl: 'duration',
  restartGrace: 'duration',
  serverTimeout: 'duration',
};

/** What ioredis documents for URLs. */
export const driverParameters: readonly string[] = ['family'];

/** URL schemes of this package. */
export const schemes: readonly string[] = [
  'redis',
  'rediss',
  'redis+sentinel',
  'rediss+sentinel',
  'redis+cluster',
  'rediss+cluster',
  'redis+quorum',
  'rediss+quorum',
];

export interface NodeAddress {
  readonly host: string;
  readonly port: number;
}

export type NatMap =
  | Readonly<Record<string, NodeAddress>>
  | ((address: string) => NodeAddress | null | undefined);

/** One server, or the master that Sentinel names. */
export interface SingleTopology {
  readonly kind: 'single' | 'sentinel';
  /** For messages: never holds a password. */
  readonly target: string;
  readonly db: number;
  readonly keyPrefix: string;
  dial(ours: Record<string, unknown>): Client;
}

export interface ClusterTopology {
  readonly kind: 'cluster';
  readonly target: string;
  readonly keyPrefix: string;
  readonly seeds: readonly NodeAddress[];
  readonly natMap: NatMap | undefined;
  dial(node: NodeAddress, ours: Record<string, unknown>): Client;
}

export type Topology = SingleTopology | ClusterTopology;

export const DEFAULT_PREFIX = 'holdfast';

/**
 * Where to connect, from what the application gave.
 *
 * @throws ConfigError, InvalidArgumentError
 */
export function topologyOf(given: RedisBackendOptions): Topology {
  if (given.client !== undefined) {
    if (given.url !== undefined) throw new ConfigError('redis: give a url or a client, not both');
    return ofClient(given.client);
  }
  if (given.url === undefined)
    throw new ConfigError('redis: url is missing (such as redis://127.0.0.1:6379)');
  return ofUrl(given.url, given);
}

function ofClient(client: AnyClient): Topology {
  if (typeof client?.duplicate !== 'function' || typeof client.options !== 'object') {
    throw new InvalidArgumentError('client', client, 'a Redis or Cluster of ioredis 5.8 or later');
  }
  const given = client.options as Readonly<Record<string, unknown>>;
  return client.isCluster === true ? ofCluster(client, given) : ofRedis(client, given);
}

function ofRedis(client: AnyClient, given: Readonly<Record<string, unknown>>): SingleTopology {
  const { sentinels, name, db, keyPrefix } = given;
  const isSentinel = Array.isArray(sentinels) && sentinels.length > 0;
  const duplicate = client.duplicate as (override: Record<string, unknown>) => unknown;
  return {
    kind: isSentinel ? 'sentinel' : 'single',
    target: isSentinel ? `Sentinel ${String(name)}` : targetOf(given),
    db: typeof db === 'number' ? db : 0,
    keyPrefix: typeof keyPrefix === 'string' ? keyPrefix : '',
    dial: (ours) => duplicate.call(client, ours) as Client,
  };
}

function targetOf(given: Readonly<Record<string, unknown>>): string {
  if (typeof given.path === 'string') return given.path;
  return `${String(given.host ?? '127.0.0.1')}:${String(given.port ?? 6379)}`;
}

function ofCluster(client: AnyClient, given: Readonly<Record<string, unknown>>): ClusterTopology {
  const { redisOptions, natMap, keyPrefix, useSRVRecords } = given;
  if (useSRVRecords === true) {
    throw new ConfigError('redis: a Cluster with useSRVRecords cannot be used; name its nodes');
  }
  const { startupNodes } = client as { startupNodes?: unknown };
  const seeds = (Array.isArray(startupNodes) ? startupNodes : []).map(startupNode);
  if (seeds.length === 0) throw new InvalidArgumentError('client', client, 'a Cluster with startup nodes');
  const inherited = { ...seeds[0]?.options, ...(redisOptions as object | undefined) };
  return {
    kind: 'cluster',
    target: seeds.map(({ host, port }) => `${host}:${port}`).join(','),
    // The cluster's own, or what ioredis has taken over from `redisOptions`.
    keyPrefix: typeof keyPrefix === 'string' ? keyPrefix : '',
    seeds,
    natMap: natMap as NatMap | undefined,
    dial: ({ host, port }, ours) => newClient({ ...inherited, host, port, ...ours, db: 0 }),
  };
}

/** ioredis takes a port, a URL or options as a startup node. */
function startupNode(node: unknown): NodeAddress & { readonly options?: object } {
  if (typeof node === 'number') return { host: '127.0.0.1', port: node };
  if (typeof node === 'string') {
    const { hosts, username, password } = parseUrl(node.includes('://') ? node : `redis://${node}`);
    const first = hosts[0] ?? { host: '127.0.0.1', port: 6379 };
    return { ...first, options: compact({ username, password }) };
  }
  const { host, port, ...rest } = node as { host?: string; port?: number | string };
  return { host: host ?? '127.0.0.1', port: Number(port ?? 6379), options: rest };
}

function ofUrl(url: string, given: RedisBackendOptions): Topology {
  const parsed = parseUrl(url);
  const { secure, hosts, path, query } = parsed;
  const family = query.get('family');
  const common = compact({
    username: given.username ?? parsed.username,
    password: given.password ?? parsed.password,
    tls: secure || given.tls !== undefined ? { ...given.tls } : undefined,
    family: family === null ? undefined : Number(family),
  });
  const target = hosts.map(({ host, port }) => `${host}:${port}`).join(',');
  switch (parsed.flavour) {
    case 'cluster':
      if (path.length > 0 || given.db) throw new ConfigError('redis+cluster: a cluster has database 0 alone');
      return {
        kind: 'cluster',
        target,
        keyPrefix: '',
        seeds: hosts,
        natMap: given.natMap,
        dial: (node, ours) => newClient({ ...common, ...node, ...ours }),
      };
    case 'sentinel': {
      const [name, dbPart] = path;
      if (name === undefined) {
        throw new ConfigError('redis+sentinel: name the master, as in redis+sentinel://h1,h2/mymaster');
      }
      const db = given.db ?? dbOf(dbPart);
      const sentinel = compact({
        sentinels: hosts,
        name,
        sentinelUsername: given.sentinelUsername,
        sentinelPassword: given.sentinelPassword,
        sentinelTLS: common.tls,
        enableTLSForSentinelMode: common.tls !== undefined,
        natMap: given.natMap,
      });
      return {
        kind: 'sentinel',
        target: `Sentinel ${name} at ${target}`,
        db,
        keyPrefix: '',
        dial: (ours) => newClient({ ...common, ...sentinel, ...ours, db }),
      };
    }
    default: {
      const [host, second] = hosts;
      if (host === undefined || second !== undefined) {
        throw new ConfigError('redis: one host; several are redis+sentinel, redis+cluster or redis+quorum');
      }
      const db = given.db ?? dbOf(path[0]);
      return {
        kind: 'single',
        target,
        db,
        keyPrefix: '',
        dial: (ours) => newClient({ ...common, ...host, ...ours, db }),
      };
    }
  }
}

export interface ParsedUrl {
  readonly flavour: string;
  readonly secure: boolean;
  readonly hosts: readonly NodeAddress[];
  readonly path: readonly string[];
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly query: URLSearchParams;
}

const URL_SHAPE = /^(rediss?)(?:\+(\w+))?:\/\/(?:([^@/?#]*)@)?([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/i;

/** A list of hosts is no URL to a WHATWG parser. The URL is never repeated in an error: it may hold a password. */
export function parseUrl(url: string): ParsedUrl {
  const match = URL_SHAPE.exec(url);
  if (match === null) throw new ConfigError('redis: the url has the form redis://user:password@host:port/db');
  const [, scheme, flavour, userinfo, authority, path, query] = match;
  const secure = scheme?.toLowerCase() === 'rediss';
  const colon = userinfo?.indexOf(':') ?? -1;
  const username = userinfo === undefined ? '' : colon < 0 ? userinfo : userinfo.slice(0, colon);
  const password = userinfo === undefined || colon < 0 ? '' : userinfo.slice(colon + 1);
  const standard = flavour?.toLowerCase() === 'sentinel' ? 26379 : 6379;
  return {
    flavour: flavour?.toLowerCase() ?? '',
    secure,
    hosts: (authority === '' ? '127.0.0.1' : (authority ?? ''))
      .split(',')
      .map((part) => hostOf(part, standard)),
    path: (path ?? '')
      .split('/')
      .filter((part) => part !== '')
      .map(decode),
    username: username === '' ? undefined : decode(username),
    password: password === '' ? undefined : decode(password),
    query: new URLSearchParams(query ?? ''),
  };
}

function hostOf(text: string, standard: number): NodeAddress {
  const match = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(text.trim());
  if (match === null) {
    // It is not repeated: a password that was not percent-encoded may end in it.
    throw new ConfigError(
      'redis: one of the hosts is not a host and port, such as h1:6379; user and password have to be percent-encoded',
    );
  }
  return { host: match[1] ?? match[2] ?? '', port: match[3] === undefined ? standard : Number(match[3]) };
}

function dbOf(part: string | undefined): number {
  if (part === undefined) return 0;
  if (!/^\d+$/.test(part)) {
    // It is not repeated: it may be a password at the wrong place.
    throw new ConfigError(
      'redis: what follows the host is not a database number, such as redis://host/0; a password stands before it, as redis://:PASSWORD@host',
    );
  }
  return Number(part);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new ConfigError('redis: the url has a broken percent escape', { cause });
  }
}

function compact(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

function newClient(given: Record<string, unknown>): Client {
  return new ioredis.Redis(given) as unknown as Client;
}
