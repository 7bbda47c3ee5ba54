import zookeeperClient from 'node-zookeeper-client';
import type { Subject, SubjectClient } from '../subject.js';
import { holdfast } from './holdfast.js';

/** The two writes that a lock costs at the least: one ephemeral sequential node made, and removed. */
const raw = rawSubject('raw create + remove', makeNode);

/** With its siblings listed in the same go: what a lock must know before it is one. */
const rawListed = rawSubject('raw create + children + remove', async (client, path) => {
  const [node] = await Promise.all([
    makeNode(client, path),
    call<string[]>((done) => client.getChildren(path, done)),
  ]);
  return node;
});

type Client = ReturnType<typeof zookeeperClient.createClient>;

function rawSubject(name: string, take: (client: Client, path: string) => Promise<string>): Subject {
  return { name, backend: 'zookeeper', kind: 'floor', waits: false, open: (url) => openRaw(url, take) };
}

function makeNode(client: Client, path: string): Promise<string> {
  const { EPHEMERAL_SEQUENTIAL } = zookeeperClient.CreateMode;
  return call<string>((done) => client.create(`${path}/n-`, Buffer.from('x'), EPHEMERAL_SEQUENTIAL, done));
}

async function openRaw(
  url: string,
  take: (client: Client, path: string) => Promise<string>,
): Promise<SubjectClient> {
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
      const node = await take(client, path);
      return () => call<void>((done) => client.remove(node, -1, (error) => done(error, undefined)));
    },
    probe: () =>
      call<void>((done) =>
        client.setData('/raw-probe', Buffer.from('x'), -1, (error) => done(error, undefined)),
      ),
    close: async () => client.close(),
  };
}

function call<T>(request: (done: (error: Error | null, value: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    request((error, value) => (error ? reject(error) : resolve(value)));
  });
}

export const zookeeper = [raw, rawListed, holdfast('zookeeper')];
