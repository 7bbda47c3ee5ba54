import { describeConformance } from '@holdfast/conformance';
import { type RedisHandle, startRedis } from '@holdfast/testbed';
import { Redis } from 'ioredis-5';
import { afterAll, beforeAll } from 'vitest';
import { redisBackend } from '../module.js';

let server: RedisHandle;
let client: Redis;

beforeAll(async () => {
  server = await startRedis({ own: true });
  // Options that an application may well have, and that locks could not live with.
  client = new Redis(server.url, { keyPrefix: 'app:', commandTimeout: 10, enableAutoPipelining: true });
  // It notices the outages too, and nobody has asked it.
  client.on('error', () => undefined);
});

afterAll(async () => {
  client.disconnect();
  await server.stop();
});

describeConformance('redis, with a client of ioredis 5 that has a keyPrefix', {
  create: ({ prefix }) => redisBackend({ client, prefix }),
  child: () => ({
    module: new URL('./ioredis-5.child.mjs', import.meta.url).href,
    options: { url: server.url },
  }),
  faults: { stop: () => server.node.stop(), start: () => server.node.start() },
});
