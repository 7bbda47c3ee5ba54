import { describeConformance } from '@holdfast/conformance';
import { MAX_DURATION } from '@holdfast/core';
import { type ServerHandle, startRedisQuorum } from '@holdfast/testbed';
import { afterAll, beforeAll, describe } from 'vitest';
import { redisQuorumBackend } from '../module.js';

/** The suite on that many servers, with some of them away from the start. */
export function describeQuorum(servers: number, away: number): void {
  const name = `redis as a quorum of ${servers}, of which ${away} are away,`;
  describe(name, () => {
    let handle: ServerHandle;

    beforeAll(async () => {
      handle = await startRedisQuorum({ servers });
      await Promise.all(handle.nodes.slice(servers - away).map((node) => node.stop()));
    });

    afterAll(() => handle.stop());

    describeConformance(name, {
      // The servers are new, and nothing was ever forgotten.
      create: ({ prefix }) =>
        redisQuorumBackend({ url: handle.url, prefix, restartGrace: 0, maxTtl: MAX_DURATION }),
      child: () => ({ url: `${handle.url}?restartGrace=0ms&maxTtl=365d` }),
    });
  });
}
