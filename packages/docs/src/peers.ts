/** A row of the comparison: a backend of ours, or a peer. */
export interface Traits {
  readonly name: string;
  readonly consistency: string;
  /** Who frees the lock of a holder that died. */
  readonly release: string;
  readonly reentry: string;
  readonly fairness: string;
  readonly wake: string;
  readonly fencing: string;
  readonly complexity: string;
  readonly fits: string;
  /** Where it says so, or where it is to be seen in its code. */
  readonly sources: readonly { readonly title: string; readonly url: string }[];
}

/** The packages that people would pick instead, as they are in the version that the benchmarks run. */
export const PEERS: readonly Traits[] = [
  {
    name: 'redlock 5.0.0-beta.2',
    consistency: 'a majority of independent servers, or one server',
    release: 'ttl, by the server’s clock; `using` extends meanwhile',
    reentry: 'no',
    fairness: 'none',
    wake: 'tries again every 200 ms ± 100 ms, 10 times by default',
    fencing: 'no',
    complexity: 'several Redis servers for what it promises',
    fits: 'work that is idempotent, on Redis servers that are there',
    sources: [
      { title: 'README', url: 'https://github.com/mike-marcacci/node-redlock#readme' },
      { title: 'source', url: 'https://github.com/mike-marcacci/node-redlock/blob/main/src/index.ts' },
    ],
  },
  {
    name: 'redis-semaphore 5',
    consistency: 'one server; `RedlockMutex`: a majority of independent servers',
    release: 'ttl (10 s by default), refreshed at 0.8 of it',
    reentry: 'no; an identifier can be handed on',
    fairness: 'none',
    wake: 'tries again every 10 ms by default',
    fencing: 'no',
    complexity: 'one Redis server',
    fits: 'mutexes and semaphores with few waiters',
    sources: [
      { title: 'README', url: 'https://github.com/swarthy/redis-semaphore#readme' },
      { title: 'source', url: 'https://github.com/swarthy/redis-semaphore/tree/master/src' },
    ],
  },
  {
    name: '@verrou/core 0.5 on Redis',
    consistency: 'one server',
    release: 'ttl, by the server’s clock; extended by hand',
    reentry: 'no; a lock can be serialized',
    fairness: 'none',
    wake: 'tries again every 250 ms by default',
    fencing: 'no',
    complexity: 'one Redis server',
    fits: 'one interface over stores, short critical sections',
    sources: [
      { title: 'documentation', url: 'https://verrou.dev/docs/introduction' },
      { title: 'source', url: 'https://github.com/Julien-R44/verrou/tree/main/packages/verrou/src' },
    ],
  },
  {
    name: '@verrou/core 0.5 on knex',
    consistency: 'one server',
    release: 'ttl, by the clocks of the clients; extended by hand',
    reentry: 'no; a lock can be serialized',
    fairness: 'none',
    wake: 'tries again every 250 ms by default',
    fencing: 'no',
    complexity: 'a table in a database that is there',
    fits: 'one interface over stores, clients whose clocks agree',
    sources: [
      { title: 'documentation', url: 'https://verrou.dev/docs/introduction' },
      { title: 'source', url: 'https://github.com/Julien-R44/verrou/tree/main/packages/verrou/src/drivers' },
    ],
  },
  {
    name: 'Lock of etcd3 1.1.2',
    consistency: 'linearizable',
    release: 'lease, kept alive by the client',
    reentry: 'no',
    fairness: 'none: it does not wait',
    wake: 'fails at once with `EtcdLockFailedError`',
    fencing: 'no token is given out',
    complexity: 'three or five etcd members',
    fits: 'trying once',
    sources: [
      { title: 'documentation', url: 'https://microsoft.github.io/etcd3/classes/lock.html' },
      { title: 'source', url: 'https://github.com/microsoft/etcd3/blob/master/src/lock.ts' },
    ],
  },
];
