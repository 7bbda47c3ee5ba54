import { describeConformance } from '@holdfast/conformance';
import { type EtcdHandle, startEtcdCluster } from '@holdfast/testbed';
import { afterAll, beforeAll } from 'vitest';
import { etcdBackend } from '../module.js';

let servers: EtcdHandle;

beforeAll(async () => {
  servers = await startEtcdCluster({ own: true });
});

afterAll(() => servers.stop());

describeConformance('etcd on three nodes', {
  create: ({ prefix }) => etcdBackend({ url: servers.url, prefix }),
  child: () => ({ url: servers.url }),
  faults: {
    stop: async () => void (await Promise.all(servers.nodes.map((node) => node.kill()))),
    start: async () => void (await Promise.all(servers.nodes.map((node) => node.start()))),
  },
});
