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
  /**
   * Takes the lock, waiting if others hold it; gives the function that releases it. `ttl` in ms is how long a dead
   * holder blocks others, 30 s unless said otherwise; a subject that cannot be told ignores it.
   */
  acquire(name: string, ttl?: number): Promise<() => Promise<unknown>>;
  /** One raw round trip of the kind that a hand-over needs: the unit in which hand-overs are quoted. */
  probe?(): Promise<unknown>;
  close(): Promise<unknown>;
}
