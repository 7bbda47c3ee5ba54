// How a child process of the suite makes the same backend as ioredis-5.test.ts.
import { redisBackend } from '@holdfast/redis';
import { Redis } from 'ioredis-5';

export function create({ prefix, url }) {
  const client = new Redis(url, { keyPrefix: 'app:', lazyConnect: true });
  return redisBackend({ client, prefix });
}
