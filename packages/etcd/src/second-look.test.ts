import { type EtcdHandle, startEtcd } from '@holdfast/testbed';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { fresh, open, until } from './test-kit.js';
import type { Put } from './transactions.js';

const mutant = vi.hoisted(() => ({ blind: false }));

/** What is lost without the second look: whoever is woken takes the lock, whether or not it is the oldest. */
vi.mock('./transactions.js', async (importOriginal) => {
  const sound = await importOriginal<typeof import('./transactions.js')>();
  const turn: typeof sound.turn = (range, token, held: Put) =>
    mutant.blind
      ? { ...sound.confirm(token, held), failure: sound.turn(range, token, held).failure ?? [] }
      : sound.turn(range, token, held);
  return { ...sound, turn };
});

let server: EtcdHandle;

beforeAll(async () => {
  server = await startEtcd({ own: true });
});

afterAll(() => server.stop());

/** A waiter in the middle leaves, which wakes the one behind it: true if that one is granted beside the holder. */
async function twoHold(): Promise<boolean> {
  await using a = await open({ hosts: server.hosts });
  await using b = await open({ hosts: server.hosts });
  await using c = await open({ hosts: server.hosts });
  const name = fresh();
  const held = await a.locks.lock(name).acquire();
  const leaving = new AbortController();
  const gone = b.locks.lock(name).acquire({ signal: leaving.signal });
  await until(async () => (await a.locks.inspect(name)).waiters.length === 1);
  const behind = c.locks
    .lock(name)
    .acquire({ wait: '3s' })
    .then(
      (hold) => hold.isHeld() && held.isHeld(),
      () => false,
    );
  await until(async () => (await a.locks.inspect(name)).waiters.length === 2);
  leaving.abort(new Error('changed my mind'));
  await expect(gone).rejects.toThrow('changed my mind');
  return await behind;
}

it('a waiter that is woken looks again before it takes the lock', async () => {
  expect(await twoHold()).toBe(false);
});

it('a waiter that is woken and does not look again holds beside the holder, which this story shows', async () => {
  mutant.blind = true;
  expect(await twoHold()).toBe(true);
  mutant.blind = false;
});
