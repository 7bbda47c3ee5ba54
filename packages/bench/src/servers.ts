import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  startEtcd,
  startMariaDb,
  startPostgres,
  startRedis,
  startRedisQuorum,
  startZooKeeper,
} from '@holdfast/testbed';
import type { Backend } from './subject.js';

/** A server to measure against. */
export interface BenchServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts the server of a backend, with its distribution's defaults as far as the testbed keeps them. */
export async function startServer(backend: Backend): Promise<BenchServer> {
  switch (backend) {
    case 'memory':
      return { url: 'memory:', stop: async () => undefined };
    case 'sqlite': {
      const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-'));
      return {
        url: `sqlite:${join(folder, 'locks.db')}`,
        stop: () => rm(folder, { recursive: true, force: true }),
      };
    }
    case 'redis':
      return startRedis();
    case 'redis-quorum':
      return startRedisQuorum();
    case 'etcd':
      return startEtcd();
    case 'zookeeper':
      return startZooKeeper();
    case 'postgres':
      return startPostgres();
    case 'mariadb':
      return startMariaDb();
  }
}
