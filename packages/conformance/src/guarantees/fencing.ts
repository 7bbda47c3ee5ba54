import type { LockHandle } from '@holdfast/core';
import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';
import { lossOf } from '../harness/party.js';
import { PROMPT, within } from '../harness/time.js';

/** Tokens rise strictly for each name, whatever happened in between, and are stable for the life of a hold. */
export const fencing: Guarantee = {
  name: 'fencing',
  cases: {
    async 'tokens rise with every grant, whichever instance it goes to'(t) {
      const instances = await t.trio();
      const name = t.name();
      const tokens: bigint[] = [];
      for (let round = 0; round < 12; round++) {
        const hold = await instances[round % 3]?.acquire(name);
        tokens.push(hold?.fencingToken ?? 0n);
        await hold?.release();
      }
      expect(tokens).toEqual(rising(tokens));
    },

    async 'tokens of contenders rise in the order of their grants'(t) {
      const instances = await t.trio();
      const name = t.name();
      const tokens: bigint[] = [];
      await Promise.all(
        Array.from({ length: 15 }, (_, index) =>
          instances[index % 3]?.lock(name).run(({ fencingToken }) => {
            tokens.push(fencingToken);
          }),
        ),
      );
      expect(tokens).toHaveLength(15);
      expect(tokens).toEqual(rising(tokens));
    },

    async 'a token is at least 1 and fits a signed 64-bit integer'(t) {
      const a = await t.open();
      const { fencingToken } = await a.acquire(t.name());
      expect(typeof fencingToken).toBe('bigint');
      expect(fencingToken).toBeGreaterThanOrEqual(1n);
      expect(BigInt.asIntN(64, fencingToken)).toBe(fencingToken);
    },

    async 'fencing-token-lifetime: a token is higher after an expiry'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.shortTtl(), renew: false });
      await within('it expires', lossOf(hold), hold.ttl + PROMPT);
      const next = await within('it is free', b.acquire(name), PROMPT);
      expect(next.fencingToken).toBeGreaterThan(hold.fencingToken);
    },

    async 'fencing-token-lifetime: a token is higher after a forced release'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const hold = await a.acquire(name);
      await t.observer.locks.forceRelease(name);
      expect((await b.acquire(name)).fencingToken).toBeGreaterThan(hold.fencingToken);
    },

    async 'a token is higher after every instance was closed and others opened'(t) {
      const first = await t.open();
      const name = t.name();
      const { fencingToken } = await first.acquire(name);
      await first.locks.close();
      const second = await t.open();
      expect((await second.acquire(name)).fencingToken).toBeGreaterThan(fencingToken);
    },

    async 'a token is stable through renewal, extension and a look at it'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name(), { ttl: t.physics.liveTtl() });
      const token = hold.fencingToken;
      await a.event('renewed', hold.name, 2, hold.ttl + PROMPT);
      await hold.extend();
      expect((await t.inspect(hold.name)).fencingToken).toBe(token);
      expect((await t.list()).map((state) => state.fencingToken)).toEqual([token]);
      expect(a.seen('acquired', hold.name)).toMatchObject([{ fencingToken: token }]);
      expect(hold.fencingToken).toBe(token);
    },

    async 'fencing-reentry: re-entry mints no token; the next holder has a higher one'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const lock = a.lock(name, { reentrant: true });
      const tokens = await lock.run(async (outer) => {
        const inner = await lock.acquire();
        await inner.extend();
        const found = [outer.fencingToken, inner.fencingToken];
        await inner.release();
        return found;
      });
      const next = await b.acquire(name);
      expect(tokens[1]).toBe(tokens[0]);
      expect(next.fencingToken).toBeGreaterThan(tokens[0] ?? 0n);
    },

    async 'asking again after a lost answer mints no second token'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      a.seam.dropAnswers('attempt', 2);
      const hold = await a.acquire(name);
      expect((await t.inspect(name)).fencingToken).toBe(hold.fencingToken);
      await hold.release();
      expect((await b.acquire(name)).fencingToken).toBeGreaterThan(hold.fencingToken);
    },

    async 'fenceOffset is added to every token that is shown, and taken off again'(t) {
      const a = await t.open();
      const moved = await t.open({ fenceOffset: 1_000_000_000_000n });
      const name = t.name();
      const hold = await moved.acquire(name);
      expect((await moved.locks.inspect(name)).fencingToken).toBe(hold.fencingToken);
      expect((await a.locks.inspect(name)).fencingToken).toBe(hold.fencingToken - 1_000_000_000_000n);
      expect(await moved.locks.forceRelease(name, { fencingToken: hold.fencingToken - 1n })).toBe(false);
      expect(await moved.locks.forceRelease(name, { fencingToken: hold.fencingToken })).toBe(true);
    },

    async 'many names that come and go each have rising tokens'(t) {
      const [a, b] = await t.pair();
      const names = Array.from({ length: 30 }, () => t.name());
      const grant = async (name: string, from: typeof a): Promise<bigint> => {
        const hold: LockHandle = await from.acquire(name);
        await hold.release();
        return hold.fencingToken;
      };
      const first = await Promise.all(names.map((name) => grant(name, a)));
      const second = await Promise.all(names.map((name) => grant(name, b)));
      expect(second.map((token, index) => token > (first[index] ?? token))).toEqual(names.map(() => true));
    },
  },

  withProcesses: {
    async 'tokens rise across processes, and past one that was killed'(t) {
      const a = await t.open();
      const dying = await t.party();
      const name = t.name();
      const first = await dying.acquire(name, { ttl: t.physics.shortTtl() });
      await dying.die();
      const second = await within('it is free', a.acquire(name), t.physics.freedAfterDeath(first.ttl));
      await second.release();
      const other = await t.party();
      const third = await other.acquire(name);
      const tokens = [first.fencingToken, second.fencingToken, third.fencingToken];
      expect(tokens).toEqual(rising(tokens));
      await third.release();
    },
  },
};

/** The same tokens as they must be: in rising order, each once. */
function rising(tokens: readonly bigint[]): readonly bigint[] {
  return [...new Set(tokens)].sort((a, b) => (a < b ? -1 : 1));
}
