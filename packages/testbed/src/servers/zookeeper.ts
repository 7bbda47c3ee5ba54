import type { PartitionableHandle, StartOptions } from './handle.js';

export interface ZooKeeperOptions extends StartOptions {
  /** Milliseconds of a tick. Sessions last 2 to 20 ticks. Default 250, so sessions of 500 ms to 5 s. */
  readonly tickTime?: number;
  /** Further lines of zoo.cfg, such as `{ maxSessionTimeout: 40000 }`. */
  readonly config?: Readonly<Record<string, string | number>>;
}

export interface ZooKeeperClusterOptions extends ZooKeeperOptions {
  /** Default 3. */
  readonly members?: number;
  /** Members reach each other's quorum and election ports through proxies: `isolate` works. Default false. */
  readonly partitionable?: boolean;
}

export interface ZooKeeperHandle extends PartitionableHandle {
  /** `h1:p1,h2:p2`, as node-zookeeper-client takes it. */
  readonly connectString: string;
  /** The member that leads now, by node index. Rejects while there is none. */
  leader(): Promise<number>;
}

/** One server. URL `zookeeper://127.0.0.1:2181`. */
export function startZooKeeper(_options?: ZooKeeperOptions): Promise<ZooKeeperHandle> {
  throw new Error('not written yet');
}

/** URL `zookeeper://h1,h2,h3`. Ready when there is a leader and every member serves. */
export function startZooKeeperCluster(_options?: ZooKeeperClusterOptions): Promise<ZooKeeperHandle> {
  throw new Error('not written yet');
}
