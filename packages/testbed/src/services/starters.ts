import { startEtcd, startEtcdCluster } from '../servers/etcd.js';
import type { ServerHandle, ServerName } from '../servers/handle.js';
import { startMariaDb, startMySql } from '../servers/mysql.js';
import { startPgBouncer } from '../servers/pgbouncer.js';
import { startPostgres } from '../servers/postgres.js';
import { startRedis } from '../servers/redis.js';
import { startRedisCluster } from '../servers/redis-cluster.js';
import { startRedisQuorum } from '../servers/redis-quorum.js';
import { startRedisSentinel } from '../servers/redis-sentinel.js';
import { startZooKeeper, startZooKeeperCluster } from '../servers/zookeeper.js';

const OWN = { own: true };

const STARTERS: Readonly<Record<Exclude<ServerName, 'pgbouncer'>, () => Promise<ServerHandle>>> = {
  redis: () => startRedis(OWN),
  'redis-sentinel': () => startRedisSentinel(OWN),
  'redis-cluster': () => startRedisCluster(OWN),
  'redis-quorum': () => startRedisQuorum(OWN),
  etcd: () => startEtcd(OWN),
  'etcd-cluster': () => startEtcdCluster(OWN),
  // People watch these for longer than a test does: sessions of 2 to 40 s.
  zookeeper: () => startZooKeeper({ ...OWN, config: { minSessionTimeout: 1000, maxSessionTimeout: 40_000 } }),
  'zookeeper-cluster': () => startZooKeeperCluster(OWN),
  postgres: () => startPostgres(OWN),
  mariadb: () => startMariaDb(OWN),
  mysql: () => startMySql(OWN),
};

export const SERVERS: readonly ServerName[] = [...(Object.keys(STARTERS) as ServerName[]), 'pgbouncer'];

/** Starts servers side by side. When one fails, those that started are stopped again. */
export async function startServers(names: readonly ServerName[]): Promise<ServerHandle[]> {
  const starts = new Map<ServerName, Promise<ServerHandle>>();
  const start = (name: ServerName): Promise<ServerHandle> => {
    const started = starts.get(name) ?? startOne(name, start);
    starts.set(name, started);
    return started;
  };
  await Promise.allSettled(names.map(start));
  const results = await Promise.allSettled(starts.values());
  const handles = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const errors = results.flatMap((result) =>
    result.status === 'rejected' ? [result.reason as unknown] : [],
  );
  if (errors.length === 0) return handles;
  await Promise.all(handles.map((handle) => handle.stop()));
  throw errors.length === 1 ? errors[0] : new AggregateError(errors, errors.map(String).join('\n'));
}

async function startOne(
  name: ServerName,
  start: (other: ServerName) => Promise<ServerHandle>,
): Promise<ServerHandle> {
  if (name !== 'pgbouncer') return STARTERS[name]();
  return startPgBouncer({ ...OWN, postgres: await start('postgres') });
}
