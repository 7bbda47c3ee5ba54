import { describeConformance } from '@holdfast/conformance';
import { type RedisClusterHandle, startRedisCluster } from '@holdfast/testbed';
import { afterAll, beforeAll } from 'vitest';
import { redisBackend } from '../module.js';

let servers: RedisClusterHandle;

beforeAll(async () => {
  servers = await startRedisCluster();
});

afterAll(() => servers.stop());

describeConformance('redis as a cluster', {
  create: ({ prefix }) => redisBackend({ url: servers.url, prefix }),
  child: () => ({ url: servers.url }),
});
