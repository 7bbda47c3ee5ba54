import zookeeperClient from 'node-zookeeper-client';
import type { Subject } from '../subject.js';
import { holdfast } from './holdfast.js';

/** One ephemeral sequential node made, its siblings listed, and removed: what any recipe needs. */
const raw: Subject = {
  name: 'raw create + children + remove',
  backend: 'zookeeper',
  kind: 'floor',
  waits: false,
  async open(url) {
    const client = zookeeperClient.createClient(url.replace('zookeeper://', ''), { sessionTimeout: 10_000 });
    await new Promise<void>((resolve) => {
      client.once('connected', () => resolve());
      client.connect();
    });
    const made = new Map<string, Promise<void>>();
    const parent = (path: string): Promise<void> => {
      const present = made.get(path);
      if (present !== undefined) return present;
      const making = call<void>((done) => client.mkdirp(path, (error) => done(error, undefined)));
      made.set(path, making);
      return making;
    };
    await parent('/raw-probe');
    return {
      async acquire(name) {
        const path = `/raw-${name}`;
        await parent(path);
        const { EPHEMERAL_SEQUENTIAL } = zookeeperClient.CreateMode;
        const [node] = await Promise.all([
          call<string>((done) => client.create(`${path}/n-`, Buffer.from('x'), EPHEMERAL_SEQUENTIAL, done)),
          call<string[]>((done) => client.getChildren(path, done)),
        ]);
        return () => call<void>((done) => client.remove(node, -1, (error) => done(error, undefined)));
      },
      probe: () =>
        call<void>((done) =>
          client.setData('/raw-probe', Buffer.from('x'), -1, (error) => done(error, undefined)),
        ),
      close: async () => client.close(),
    };
  },
};

function call<T>(request: (done: (error: Error | null, value: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    request((error, value) => (error ? reject(error) : resolve(value)));
  });
}

export const zookeeper = [raw, holdfast('zookeeper')];
