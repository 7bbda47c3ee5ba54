import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks } from '@holdfast/core';
import { startZooKeeper, type ZooKeeperHandle } from '@holdfast/testbed';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { zookeeperBackend } from './backend.js';
import { connectedClient, FACTOR, proxyTo, rawLibrary, received } from './test-kit.js';

let server: ZooKeeperHandle;
beforeAll(async () => {
  server = await startZooKeeper();
});
afterAll(() => server.stop());

test('a lock is taken, waited for, handed over with a higher token, and given back', async () => {
  await using one = await createLocks(zookeeperBackend({ url: server.url }));
  await using two = await createLocks(zookeeperBackend({ url: server.url }));
  const first = await one.lock('a/b', { metadata: 'for a test' }).acquire();
  expect(await two.lock('a/b').tryAcquire()).toBeNull();
  expect(await two.inspect('a/b')).toMatchObject({
    held: true,
    owner: first.owner,
    fencingToken: first.fencingToken,
    metadata: 'for a test',
    waiters: [],
  });

  const queued = new Promise((resolve) => two.on('waiting', resolve));
  const waiting = two.lock('a/b').acquire();
  await queued;
  expect(await first.release()).toBe(true);
  const second = await waiting;
  expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
  expect(await second.verify()).toBe(true);
  expect(await second.release()).toBe(true);
  expect(await two.inspect('a/b')).toMatchObject({ held: false });
});

test('a refusal says who holds it and since when, also without a wait', async () => {
  await using one = await createLocks(zookeeperBackend({ url: server.url, prefix: 'since' }));
  await using two = await createLocks(zookeeperBackend({ url: server.url, prefix: 'since' }));
  const { owner } = await one.lock('k').acquire();
  const { acquiredAt: since } = await one.inspect('k');
  expect(since).toBeInstanceOf(Date);
  for (const wait of [0, 300]) {
    await expect(two.lock('k').acquire({ wait })).rejects.toMatchObject({
      code: 'LOCK_TIMEOUT',
      holder: { owner, since },
    });
  }
});

test('a client that is handed in says where, and is left alone', async () => {
  const client = await connectedClient(server.node);
  const locks = await createLocks(zookeeperBackend({ client, prefix: 'handed-in' }));
  const hold = await locks.lock('k').acquire();
  const others = await createLocks(zookeeperBackend({ url: server.url, prefix: 'handed-in' }));
  expect((await others.inspect('k')).owner).toBe(hold.owner);
  await others.close();

  const made = await new Promise<string>((resolve, reject) => {
    client.create('/mine', Buffer.from('x'), rawLibrary.CreateMode.EPHEMERAL, (error, path) =>
      error === null ? resolve(path) : reject(error),
    );
  });
  await locks.close();
  expect(client.getState().name).toBe('SYNC_CONNECTED');
  const stat = await new Promise((resolve) => client.exists(made, (_, found) => resolve(found)));
  expect(stat).not.toBeNull();
});

test('a grant just after an interruption is worth more than what the session had left', {
  timeout: 60_000 * FACTOR,
}, async () => {
  const proxy = await proxyTo(server.node);
  const url = `zookeeper://${proxy.address}`;
  await using locks = await createLocks(
    zookeeperBackend({ url, prefix: 'sound', sessionTimeout: 8000 * FACTOR }),
  );
  const first = await locks.lock('k').acquire({ ttl: 1000 });
  const session = first.ttl;
  await first.release();
  // Some heartbeats, and then none for most of a session, which the server keeps.
  await sleep(0.6 * session);
  await proxy.refuse();
  proxy.reset();
  await sleep(0.7 * session);
  await proxy.heal();
  const hold = await locks.lock('k').acquire();
  expect(hold.remaining()).toBeGreaterThan(session / 4);
  expect(await hold.release()).toBe(true);
});

test('two thousand new names at once are granted, and given back', { timeout: 60_000 * FACTOR }, async () => {
  await using locks = await createLocks(zookeeperBackend({ url: server.url, prefix: 'burst' }));
  const names = Array.from({ length: 2000 }, (_, index) => `n${index}`);
  const before = await received(server.node);
  const holds = await Promise.all(names.map((name) => locks.lock(name).acquire()));
  const released = await Promise.all(holds.map((hold) => hold.release()));
  expect(released.filter((answer) => !answer)).toEqual([]);
  // The first requests meet no parent, not even that of all: each makes its own, one makes that of all.
  expect((await received(server.node)) - before).toBeLessThan(11 * names.length);
});
