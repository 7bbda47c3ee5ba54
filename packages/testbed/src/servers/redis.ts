import type { ServerClock } from '../processes/clock.js';
import type { ProxiedHandle, ServerHandle, ServerNode, StartOptions } from './handle.js';

/** How a Redis server is set up. Every option given means a server of the test's own. */
export interface RedisOptions extends StartOptions {
  /** `requirepass`: the password of the default user. Part of the handle's URL. */
  readonly password?: string;
  /** ACL users; the URL of the handle is the first one's. `rules` such as `~* &* +@all`. */
  readonly users?: readonly { readonly name: string; readonly password: string; readonly rules: string }[];
  /** TLS only, with a certificate for `127.0.0.1` and `localhost` from an authority made for this handle. */
  readonly tls?: boolean;
  /** What survives a kill: nothing (default), or every write (`appendfsync always`). */
  readonly persistence?: 'none' | 'aof';
  /** Further directives of redis.conf, such as `{ 'maxmemory-policy': 'noeviction' }`. */
  readonly config?: Readonly<Record<string, string | number>>;
  /** A clock that can be set (libfaketime; local binaries only). */
  readonly clock?: ServerClock;
}

/** PEM texts of a server that speaks TLS. */
export interface TlsFiles {
  readonly ca: string;
  readonly caFile: string;
}

export interface RedisHandle extends ServerHandle {
  /** There when started with `tls`. */
  readonly tls?: TlsFiles;
}

/** One Redis server. URL `redis://…`, with TLS `rediss://…`. */
export function startRedis(_options?: RedisOptions): Promise<RedisHandle> {
  throw new Error('not written yet');
}

export interface RedisSentinelOptions extends StartOptions {
  /** Default 2. */
  readonly replicas?: number;
  /** Default 3; the quorum is their majority. */
  readonly sentinels?: number;
  /** Password of primary and replicas, for clients, replication and sentinels. */
  readonly password?: string;
  /** Silence after which a sentinel counts the primary as down. Milliseconds, default 1000. */
  readonly downAfter?: number;
  /** Directives for the primary and the replicas. */
  readonly config?: Readonly<Record<string, string | number>>;
  /** Every data node and sentinel stands behind a proxy that it announces. Default false. */
  readonly proxied?: boolean;
}

/** A primary with replicas, watched by sentinels. `nodes` are the data nodes, then the sentinels. */
export interface RedisSentinelHandle extends ProxiedHandle {
  /** What the sentinels call it: `holdfast`. */
  readonly primaryName: string;
  /** The data nodes; the first was the primary at the start. */
  readonly dataNodes: readonly ServerNode[];
  readonly sentinels: readonly ServerNode[];
  /** Asks a sentinel which data node is the primary now. */
  primary(): Promise<ServerNode>;
  /** Resolves with the new primary when the sentinels name another than `before` and it accepts writes. */
  failedOver(before: ServerNode): Promise<ServerNode>;
}

/** URL `redis+sentinel://h1,h2,h3/holdfast`. Ready when all replicas are in step and the sentinels know each other. */
export function startRedisSentinel(_options?: RedisSentinelOptions): Promise<RedisSentinelHandle> {
  throw new Error('not written yet');
}

export interface RedisClusterOptions extends StartOptions {
  /** Default 3, the fewest that Redis accepts. */
  readonly primaries?: number;
  /** Replicas of each primary. Default 0. */
  readonly replicas?: number;
  readonly password?: string;
  /** Milliseconds of silence after which a node counts as failing. Default 1000. */
  readonly nodeTimeout?: number;
  readonly config?: Readonly<Record<string, string | number>>;
  /** Every node stands behind a proxy that it announces to clients; the bus between nodes does not. */
  readonly proxied?: boolean;
}

/** A cluster; the first `primaries` nodes own the slots, in order, at the start. */
export interface RedisClusterHandle extends ProxiedHandle {
  /** The node that owned the key's slot at the start. */
  ownerOf(key: string): ServerNode;
}

/** URL `redis+cluster://h1,h2,h3`. Ready when every node says `cluster_state:ok`. */
export function startRedisCluster(_options?: RedisClusterOptions): Promise<RedisClusterHandle> {
  throw new Error('not written yet');
}

export interface RedisQuorumOptions extends Omit<RedisOptions, 'users' | 'tls' | 'clock'> {
  /** Default 5. */
  readonly servers?: number;
  /** A clock for each server that is to have one of its own, by index. */
  readonly clocks?: readonly (ServerClock | undefined)[];
}

/** Independent servers. URL `redis+quorum://h1,h2,h3,h4,h5`. */
export function startRedisQuorum(_options?: RedisQuorumOptions): Promise<ServerHandle> {
  throw new Error('not written yet');
}
