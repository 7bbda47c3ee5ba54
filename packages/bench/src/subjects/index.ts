import type { Backend, Subject } from '../subject.js';
import { etcd } from './etcd.js';
import { holdfast } from './holdfast.js';
import { redis, redisQuorum } from './redis.js';
import { mariadb, postgres } from './sql.js';
import { sqlite } from './sqlite.js';
import { zookeeper } from './zookeeper.js';

/** Every subject. Each runs in a process of its own. */
export const subjects: readonly Subject[] = [
  holdfast('memory'),
  ...sqlite,
  ...redis,
  ...redisQuorum,
  ...etcd,
  ...zookeeper,
  ...postgres,
  ...mariadb,
];

export function findSubject(backend: Backend, name: string): Subject {
  const found = subjects.find((subject) => subject.backend === backend && subject.name === name);
  if (found === undefined) throw new Error(`no subject ${name} on ${backend}`);
  return found;
}
