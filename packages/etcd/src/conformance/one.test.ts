import { describeConformance } from '@holdfast/conformance';
import { type EtcdHandle, startEtcd } from '@holdfast/testbed';
import { afterAll, beforeAll } from 'vitest';
import { etcdBackend } from '../module.js';

let server: EtcdHandle;

beforeAll(async () => {
  server = await startEtcd({ own: true });
});

afterAll(() => server.stop());

describeConformance('etcd on one node', {
  create: ({ prefix }) => etcdBackend({ url: server.url, prefix }),
  child: () => ({ url: server.url }),
  faults: { stop: () => server.node.kill(), start: () => server.node.start() },
});
