import { describeConformance } from '@holdfast/conformance';
import { type RedisSentinelHandle, startRedisSentinel } from '@holdfast/testbed';
import { afterAll, beforeAll } from 'vitest';
import { redisBackend } from '../module.js';

let servers: RedisSentinelHandle;

beforeAll(async () => {
  servers = await startRedisSentinel();
});

afterAll(() => servers.stop());

describeConformance('redis behind Sentinel', {
  create: ({ prefix }) => redisBackend({ url: servers.url, prefix }),
  child: () => ({ url: servers.url }),
});
