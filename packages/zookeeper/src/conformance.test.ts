import { describeConformance } from '@holdfast/conformance';
import { startZooKeeper, startZooKeeperCluster, type ZooKeeperHandle } from '@holdfast/testbed';
import { afterAll, beforeAll, describe } from 'vitest';
import { zookeeperBackend } from './backend.js';

// The suite waits for dead holders: a short session keeps it short.
const SESSION = 2500 * Number(process.env.HOLDFAST_TIME_FACTOR ?? 1);

describe.each([
  ['one server', startZooKeeper],
  ['an ensemble of three', startZooKeeperCluster],
])('on %s', (_, start) => {
  let server: ZooKeeperHandle;
  beforeAll(async () => {
    server = await start({ own: true, config: { maxSessionTimeout: SESSION } });
  });
  afterAll(() => server.stop());

  describeConformance('zookeeper', {
    create: ({ prefix }) => zookeeperBackend({ url: server.url, prefix, sessionTimeout: SESSION }),
    child: () => ({ url: `${server.url}?sessionTimeout=${SESSION}` }),
    faults: {
      stop: async () => void (await Promise.all(server.nodes.map((node) => node.kill()))),
      start: async () => void (await Promise.all(server.nodes.map((node) => node.start()))),
    },
  });
});
