/** What the benchmarks compare: this project, the raw calls that any correct lock needs, and the peers. */
export interface Subject {
  readonly name: string;
  /** Subjects of one backend run against one server. */
  readonly backend: Backend;
  readonly kind: 'holdfast' | 'floor' | 'peer';
  /** It waits for others by itself, so that it can take part under contention. */
  readonly waits: boolean;
  open(url: string): Promise<SubjectClient>;
}

export type Backend =
  | 'memory'
  | 'sqlite'
  | 'redis'
  | 'redis-quorum'
  | 'etcd'
  | 'zookeeper'
  | 'postgres'
  | 'mariadb';

/** One process's connection. */
export interface SubjectClient {
  /** Takes the lock, waiting if others hold it; gives the function that releases it. */
  acquire(name: string): Promise<() => Promise<unknown>>;
  /** One raw round trip of the kind that a hand-over needs: the unit in which hand-overs are quoted. */
  probe?(): Promise<unknown>;
  close(): Promise<unknown>;
}
