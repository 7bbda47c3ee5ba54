import { describeConformance } from '@holdfast/conformance';
import { type EtcdHandle, startEtcdCluster } from '@holdfast/testbed';
import { Etcd3 } from 'etcd3';
import { afterAll, beforeAll } from 'vitest';
import { etcdBackend } from '../module.js';

let servers: EtcdHandle;
let client: Etcd3;

beforeAll(async () => {
  servers = await startEtcdCluster();
  // With etcd3's own retries and circuit breakers, as most applications have it.
  client = new Etcd3({ hosts: [...servers.hosts] });
});

afterAll(async () => {
  client.close();
  await servers.stop();
});

describeConformance('etcd, with a client that was handed in', {
  create: ({ prefix }) => etcdBackend({ client, prefix }),
  child: () => ({ url: servers.url }),
});
