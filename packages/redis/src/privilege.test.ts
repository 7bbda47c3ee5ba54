import { readFile } from 'node:fs/promises';
import { createLocks, type Locks } from '@holdfast/core';
import { type RedisHandle, startRedis } from '@holdfast/testbed';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { redisBackend, redisQuorumBackend } from './module.js';

// The documentation says what a user must be allowed, and these users are allowed just that.

/** The rules of the page's ACL SETUSER line, for the tests' prefix. */
async function documentedRules(page: string): Promise<string> {
  const text = await readFile(new URL(`../../../docs/backends/${page}.md`, import.meta.url), 'utf8');
  const [, rules = ''] = /^ACL SETUSER app on >secret (.*)$/m.exec(text) ?? [];
  return rules.replaceAll('shop:*', 'holdfast:*');
}

let single: RedisHandle;
let three: readonly RedisHandle[];

beforeAll(async () => {
  const [ofSingle, ofQuorum] = [await documentedRules('redis'), await documentedRules('redis-quorum')];
  expect([ofSingle, ofQuorum]).not.toContain('');
  single = await startRedis({ users: [{ name: 'app', password: 'secret', rules: ofSingle }] });
  three = await Promise.all(
    [0, 1, 2].map(() => startRedis({ users: [{ name: 'app', password: 'secret', rules: ofQuorum }] })),
  );
});

afterAll(() => Promise.all([single, ...three].map((server) => server.stop())));

/** Every request that there is, with somebody waiting and without. */
async function everything(a: Locks, b: Locks): Promise<void> {
  const hold = await a.lock('job').acquire({ ttl: 30_000, metadata: 'text' });
  const waiting = b.lock('job').acquire({ wait: 20_000, ttl: 30_000 });
  const givenUp = b.lock('job').acquire({ wait: 300 });
  await expect(givenUp).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
  expect(await b.lock('job').tryAcquire()).toBeNull();
  await hold.extend(40_000);
  expect(await hold.verify()).toBe(true);
  expect((await a.inspect('job')).owner).toBe(hold.owner);
  expect(await hold.release()).toBe(true);
  const next = await waiting;
  await next.extend();
  const adopted = await a.adopt(next.serialize());
  expect(adopted.fencingToken).toBe(next.fencingToken);
  const names: string[] = [];
  for await (const state of a.list()) names.push(state.name);
  expect(names).toEqual(['job']);
  expect(await b.forceRelease('job')).toBe(true);
  await expect(adopted.extend()).rejects.toMatchObject({ reason: 'forced' });
  const tail = await a.lock('tail').acquire({ minHold: 20_000 });
  expect(await tail.release()).toBe(true);
  expect((await b.inspect('tail')).held).toBe(true);
}

it('a user with the documented rights can do everything with locks', async () => {
  const errors: Error[] = [];
  const open = async () => {
    const locks = await createLocks(redisBackend({ url: single.url }));
    locks.on('error', ({ error }) => errors.push(error));
    return locks;
  };
  await using a = await open();
  await using b = await open();
  await everything(a, b);
  // Signs of life are requests too.
  await a.lock('long').acquire({ ttl: 60_000 });
  const waiting = b.lock('long').acquire({ wait: 2500 });
  await expect(waiting).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
  expect(errors).toEqual([]);
});

it('so can one with the documented rights on the servers of a quorum', async () => {
  const url = three.map((server) => server.node.address).join();
  const open = () =>
    createLocks(redisQuorumBackend({ url: `redis+quorum://app:secret@${url}`, restartGrace: 1500 }));
  await using a = await open();
  await using b = await open();
  // They have just started, and keep out for the grace.
  await (await a.lock('old').acquire({ wait: 25_000 })).release();
  await everything(a, b);
});
