import { describe, expect, it } from 'vitest';
import type { LockBackend } from './backend.js';
import { Breaking } from './breaking.js';
import { world } from './testing/world.js';

describe('a release by force', () => {
  it.each([false, true])(
    'whose answer is lost breaks nobody else, and is one (expecting: %s)',
    async (expecting) => {
      const { a, b, flaky, clock } = await world();
      const held = await b.lock('k').acquire();
      const next = b.lock('k').acquire();
      await clock.idle();
      flaky.next('forceRelease', 'lose-answer');
      const forced = a.forceRelease('k', expecting ? { fencingToken: held.fencingToken } : undefined);
      await clock.advance(1000);
      expect(await forced).toBe(true);
      expect(flaky.count('forceRelease')).toBe(2);
      expect([held.isHeld(), (await next).isHeld(), await (await next).verify()]).toEqual([
        false,
        true,
        true,
      ]);
    },
  );

  it.each(['refuse', 'hang'] as const)('whose request is lost (%s) is sent again', async (fault) => {
    const { a, b, flaky, clock } = await world();
    const held = await b.lock('k').acquire();
    flaky.next('forceRelease', fault);
    const forced = a.forceRelease('k');
    await clock.advance(3000);
    expect(await forced).toBe(true);
    expect(held.isHeld()).toBe(false);
  });

  it('whose request is lost, of a lock that its holder gives back meanwhile, is none', async () => {
    const { a, b, flaky, clock } = await world();
    const held = await b.lock('k').acquire();
    const next = b.lock('k').acquire();
    await clock.idle();
    flaky.next('forceRelease', 'refuse');
    const forced = a.forceRelease('k');
    await clock.idle();
    expect(await held.release()).toBe(true);
    await clock.advance(1000);
    expect(await forced).toBe(false);
    expect((await next).isHeld()).toBe(true);
  });
});

/** A lock that has another holder each time it is looked at, until it has had so many. */
function changingHands(times: number) {
  const asked: (bigint | undefined)[] = [];
  let token = 0n;
  const backend = {
    inspect: async () => ({ name: 'k', held: true, fencingToken: ++token, waiters: [] }),
    forceRelease: async (_: string, expected?: bigint) => {
      asked.push(expected);
      return asked.length > times;
    },
  };
  return { backend: backend as Partial<LockBackend> as LockBackend, asked };
}

it('a lock that changes hands while it is looked at is looked at again', async () => {
  const { backend, asked } = changingHands(3);
  expect(await new Breaking(backend, 'k', undefined).strike()).toBe(true);
  expect(asked).toEqual([1n, 2n, 3n, 4n]);
});

it('a tail that shows no token: what comes after it is not hit by asking again', async () => {
  const asked: (bigint | undefined)[] = [];
  let after = false;
  const backend: Partial<LockBackend> = {
    inspect: async () => ({ name: 'k', held: true, waiters: [], ...(after ? { fencingToken: 7n } : {}) }),
    forceRelease: async (_, expected) => {
      asked.push(expected);
      after = true;
      throw new Error('the answer was lost');
    },
  };
  const breaking = new Breaking(backend as LockBackend, 'k', undefined);
  await expect(breaking.strike()).rejects.toThrow('lost');
  expect(await breaking.strike()).toBe(true);
  expect(asked).toEqual([undefined]);
});

it('an expected grant that has gone is not looked for', async () => {
  const { backend, asked } = changingHands(3);
  expect(await new Breaking(backend, 'k', 7n).strike()).toBe(false);
  expect(asked).toEqual([7n]);
});
