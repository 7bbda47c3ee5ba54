import type { FaultProxy } from '../proxy/proxy.js';

/** The servers that the testbed can start. The name is also what `HOLDFAST_TEST_SKIP` and `pnpm services` take. */
export type ServerName =
  | 'redis'
  | 'redis-sentinel'
  | 'redis-cluster'
  | 'redis-quorum'
  | 'etcd'
  | 'etcd-cluster'
  | 'zookeeper'
  | 'zookeeper-cluster'
  | 'postgres'
  | 'pgbouncer'
  | 'mariadb'
  | 'mysql';

/** Who runs a server: somebody else (a URL in the environment), a Docker engine, or this machine's binaries. */
export type ProviderName = 'environment' | 'docker' | 'local';

/**
 * One server process. Every operation resolves when it is true: `start` when the node answers, `stop` and `kill` when
 * the process has gone. Data survive `stop`, `kill` and `restart` as far as the server's own settings keep them.
 *
 * A node that came from the environment can only be talked to: its operations reject, saying so.
 */
export interface ServerNode {
  /** Unique within the handle, such as `redis`, `sentinel-2`. */
  readonly name: string;
  readonly host: string;
  readonly port: number;
  /** `host:port` */
  readonly address: string;
  /** Reaches this node alone, credentials included. */
  readonly url: string;
  readonly state: NodeState;
  /** The server's process where it runs on this machine without a container. */
  readonly pid: number | undefined;
  /** Starts a stopped node again on the same port with the same data. Does nothing to one that runs. */
  start(): Promise<void>;
  /** Asks the server to end in its own orderly way. Kills it when it does not within some seconds. */
  stop(): Promise<void>;
  /** kill −9 for the process and its children, paused or not. */
  kill(): Promise<void>;
  /** `stop`, or `kill` where asked for, then `start`. */
  restart(options?: { readonly by?: 'stop' | 'kill' }): Promise<void>;
  /** SIGSTOP for the process and its children: connections stay open, nothing is answered. */
  pause(): Promise<void>;
  /** SIGCONT. */
  resume(): Promise<void>;
  /** What the server has logged so far. */
  log(): Promise<string>;
}

export type NodeState = 'running' | 'paused' | 'stopped';

/**
 * A running server or group of servers, whoever provides it. Stop it when done; `await using` does. Its processes and
 * files are removed even when this process is killed with −9.
 */
export interface ServerHandle extends AsyncDisposable {
  readonly server: ServerName;
  readonly provider: ProviderName;
  /** As `connect()` takes it, credentials included. */
  readonly url: string;
  /** Never empty. */
  readonly nodes: readonly ServerNode[];
  /** The first node: the server, where there is only one. */
  readonly node: ServerNode;
  /** Stops every node and removes its data. Idempotent. */
  stop(): Promise<void>;
}

/** A handle whose nodes stand behind proxies that they announce, so that clients which discover nodes meet them. */
export interface ProxiedHandle extends ServerHandle {
  /** One for each node in the order of `nodes`; empty unless `proxied` was asked for. */
  readonly proxies: readonly FaultProxy[];
}

/** A group whose members talk to one another through proxies, so that one of them can be cut off from the rest. */
export interface PartitionableHandle extends ServerHandle {
  /**
   * Cuts the node from its peers, in both directions, by silence; clients still reach it.
   *
   * @throws Error when the group was not started with `partitionable: true`
   */
  isolate(node: ServerNode): void;
  /** Ends every isolation. */
  rejoin(): Promise<void>;
}

/** What every `start…` function takes. */
export interface StartOptions {
  /**
   * A server of this test's own, even where the environment names one: for tests that stop, pause, flush or
   * reconfigure it. Any option that changes the server implies it. Default false.
   */
  readonly own?: boolean;
}
