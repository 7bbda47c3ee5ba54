import { describeConformance } from '@holdfast/conformance';
import { type RedisHandle, startRedis } from '@holdfast/testbed';
import { afterAll, beforeAll } from 'vitest';
import { redisBackend } from '../module.js';

let server: RedisHandle;

beforeAll(async () => {
  server = await startRedis({ own: true });
});

afterAll(() => server.stop());

describeConformance('redis', {
  create: ({ prefix }) => redisBackend({ url: server.url, prefix }),
  child: () => ({ url: server.url }),
  faults: { stop: () => server.node.stop(), start: () => server.node.start() },
});
