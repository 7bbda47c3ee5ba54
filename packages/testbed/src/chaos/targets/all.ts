import type { ChaosTarget } from '../target.js';
import { etcd, etcdCluster } from './etcd.js';
import { memory } from './memory.js';
import { redis, redisCluster, redisHandOver, redisSentinel } from './redis.js';
import { redisQuorum } from './redis-quorum.js';
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
  redisHandOver,
  redisSentinel,
  redisCluster,
  redisQuorum,
  etcd,
  etcdCluster,
  zookeeper,
  zookeeperCluster,
];
