import type { ChaosTarget } from '../target.js';
import { etcd, etcdCluster } from './etcd.js';
import { memory } from './memory.js';
import { redis, redisCluster, redisSentinel } from './redis.js';
import { mariadb, postgres } from './sql-servers.js';
import { sqlite } from './sqlite.js';
import { zookeeper, zookeeperCluster } from './zookeeper.js';

/** Every backend that can be put under chaos. */
export const TARGETS: readonly ChaosTarget[] = [
  memory,
  sqlite,
  postgres,
  mariadb,
  redis,
  redisSentinel,
  redisCluster,
  etcd,
  etcdCluster,
  zookeeper,
  zookeeperCluster,
];
