import type { PartitionableHandle, StartOptions } from './handle.js';

export interface EtcdOptions extends StartOptions {
  /** Turns authentication on with this password for the user `root`, which the URL then carries. */
  readonly rootPassword?: string;
  /** Life of an auth token in seconds, to see it expire. Default 300. */
  readonly authTokenTtl?: number;
  /** TLS for clients, with an authority made for this handle. The URL is then `etcds://…`. */
  readonly tls?: boolean;
  /** Further flags without the dashes, such as `{ 'auto-compaction-retention': '1' }`. */
  readonly flags?: Readonly<Record<string, string>>;
}

export interface EtcdClusterOptions extends EtcdOptions {
  /** Default 3. */
  readonly members?: number;
  /** Members reach each other through proxies: `isolate` works. Default false. */
  readonly partitionable?: boolean;
}

export interface EtcdHandle extends PartitionableHandle {
  /** For etcd3's `hosts`: `http://127.0.0.1:2379`, one for each member. */
  readonly hosts: readonly string[];
  /** There when started with `tls`. */
  readonly tls?: { readonly ca: string; readonly caFile: string };
  /** The member that leads now, by node index. Rejects while there is none. */
  leader(): Promise<number>;
}

/** One member. URL `etcd://127.0.0.1:2379`. */
export function startEtcd(_options?: EtcdOptions): Promise<EtcdHandle> {
  throw new Error('not written yet');
}

/** URL `etcd://h1,h2,h3`. Ready when all members agree on a leader. */
export function startEtcdCluster(_options?: EtcdClusterOptions): Promise<EtcdHandle> {
  throw new Error('not written yet');
}
