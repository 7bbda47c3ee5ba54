import { describeConformance } from '@holdfast/conformance';
import { MAX_DURATION } from '@holdfast/core';
import { type ServerHandle, startRedisQuorum } from '@holdfast/testbed';
import { afterAll, beforeAll } from 'vitest';
import { redisQuorumBackend } from '../module.js';

let servers: ServerHandle;

beforeAll(async () => {
  servers = await startRedisQuorum({ servers: 3 });
});

afterAll(() => servers.stop());

describeConformance('redis as a quorum of three', {
  // The servers are new, and nothing was ever forgotten.
  create: ({ prefix }) =>
    redisQuorumBackend({ url: servers.url, prefix, restartGrace: 0, maxTtl: MAX_DURATION }),
  child: () => ({ url: `${servers.url}?restartGrace=0ms&maxTtl=365d` }),
});
