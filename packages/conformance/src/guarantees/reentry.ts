import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';
import { lossOf } from '../harness/party.js';
import { defer, elapse, outcome, PROMPT, within } from '../harness/time.js';

/** Inside `run`, a call chain that holds the lock may take it again; whoever is not inside waits. */
export const reentry: Guarantee = {
  name: 're-entry',
  cases: {
    async 'inside run(), acquire, tryAcquire and run of the same name return at once with the same owner and token'(
      t,
    ) {
      const a = await t.open();
      const name = t.name();
      const lock = a.lock(name, { reentrant: true });
      await lock.run(async (outer) => {
        const attempts = a.seam.count('attempt');
        const acquired = await lock.acquire();
        const tried = await lock.tryAcquire();
        const ran = await lock.run((hold) => [hold.owner, hold.fencingToken]);
        const same = [outer.owner, outer.fencingToken];
        expect([acquired.owner, acquired.fencingToken]).toEqual(same);
        expect([tried?.owner, tried?.fencingToken]).toEqual(same);
        expect(ran).toEqual(same);
        expect(a.seam.count('attempt')).toBe(attempts);
        await acquired.release();
        await tried?.release();
        expect(outer.isHeld()).toBe(true);
      });
      expect((await t.inspect(name)).held).toBe(false);
    },

    async 'the last release frees the lock, the earlier ones do not'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const lock = a.lock(name, { reentrant: true });
      const inner = await lock.run(async (outer) => {
        const again = await lock.acquire();
        expect(await outer.release()).toBe(true);
        expect([outer.isHeld(), again.isHeld()]).toEqual([false, true]);
        expect(await b.tryAcquire(name)).toBeNull();
        return again;
      });
      expect(inner.isHeld()).toBe(true);
      expect(await b.tryAcquire(name)).toBeNull();
      expect(await inner.release()).toBe(true);
      expect((await b.acquire(name)).isHeld()).toBe(true);
    },

    async 'it takes reentrant on both calls'(t) {
      const a = await t.open();
      const name = t.name();
      await a.lock(name).run(async () => {
        expect(await a.lock(name).tryAcquire({ reentrant: true })).toBeNull();
      });
      await a.lock(name).run(
        async () => {
          expect(await a.lock(name).tryAcquire()).toBeNull();
        },
        { reentrant: true },
      );
    },

    async 'another instance is not inside'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      await a.lock(name, { reentrant: true }).run(async () => {
        expect(await b.lock(name, { reentrant: true }).tryAcquire()).toBeNull();
      });
    },

    async 'another call chain is not inside'(t) {
      const a = await t.open();
      const name = t.name();
      const lock = a.lock(name, { reentrant: true });
      const entered = defer<void>();
      const leave = defer<void>();
      const running = lock.run(async () => {
        entered.resolve();
        await leave.promise;
      });
      await entered.promise;
      expect(await lock.tryAcquire()).toBeNull();
      leave.resolve();
      await running;
    },

    async 'another name inside run() is an acquisition like any'(t) {
      const [a, b] = await t.pair();
      const [outer, inner] = [t.name(), t.name()];
      const theirs = await b.acquire(inner, { ttl: t.physics.longTtl() });
      await a.lock(outer, { reentrant: true }).run(async (hold) => {
        expect(await a.lock(inner, { reentrant: true }).tryAcquire()).toBeNull();
        await theirs.release();
        const ours = await a.lock(inner, { reentrant: true }).acquire();
        expect(ours.owner).not.toBe(hold.owner);
        await ours.release();
      });
    },

    async 'reentry-async-fanout: siblings inside share the hold; work that outlives the callback waits its turn'(
      t,
    ) {
      const [a, b] = await t.pair();
      const name = t.name();
      const lock = a.lock(name, { reentrant: true });
      const detached = defer<void>();
      let late: Promise<boolean> | undefined;
      const owners = await lock.run(async (outer) => {
        late = detached.promise.then(async () => (await lock.tryAcquire()) === null);
        const siblings = await Promise.all(
          Array.from({ length: 5 }, () =>
            lock.run(async (hold) => {
              await elapse(5);
              return hold.owner;
            }),
          ),
        );
        return new Set([outer.owner, ...siblings]);
      });
      expect(owners.size).toBe(1);
      const theirs = await within('the lock is free again', b.acquire(name));
      detached.resolve();
      expect(await late).toBe(true);
      await theirs.release();
    },

    async 'reentry-shrinks-ttl: a nested shorter ttl does not shorten the hold'(t) {
      const a = await t.open();
      const name = t.name();
      const lock = a.lock(name, { reentrant: true, renew: false });
      const long = t.physics.longTtl();
      const short = t.physics.shortTtl();
      await lock.run(
        async (outer) => {
          const inner = await lock.acquire({ ttl: short });
          expect(inner.ttl).toBe(outer.ttl);
          await inner.release();
          expect(outer.ttl).toBe(long);
          expect(outer.remaining()).toBeGreaterThan(t.physics.leastLeft(long));
        },
        { ttl: long },
      );
    },

    async 'a nested longer ttl lengthens the hold'(t) {
      const a = await t.open();
      const lock = a.lock(t.name(), { reentrant: true, renew: false });
      const longer = t.physics.longTtl();
      await lock.run(
        async (outer) => {
          const inner = await lock.acquire({ ttl: longer });
          expect(inner.ttl).toBe(longer);
          expect(outer.remaining()).toBeGreaterThan(t.physics.leastLeft(longer));
          await inner.release();
        },
        { ttl: t.physics.effective(longer / 2) },
      );
    },

    async 're-entry does not move maxHold'(t) {
      const a = await t.open();
      const name = t.name();
      const lock = a.lock(name, { reentrant: true });
      const maxHold = 500;
      const ended = lock.run(
        async (outer) => {
          const inner = await lock.acquire({ ttl: t.physics.longTtl(), maxHold: '1h' });
          expect(inner.remaining()).toBeLessThanOrEqual(maxHold);
          const reason = await within('the hold ends', lossOf(outer), maxHold + PROMPT);
          expect([reason, inner.isHeld()]).toEqual(['max-hold', false]);
        },
        { maxHold },
      );
      await expect(ended).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'max-hold' });
    },

    async 're-entry into a lost lock fails with LockLostError'(t) {
      const a = await t.open();
      const name = t.name();
      const lock = a.lock(name, { reentrant: true, ttl: t.physics.shortTtl() });
      const ended = lock.run(async (outer) => {
        await t.observer.locks.forceRelease(name);
        await within('the loss is told', lossOf(outer), outer.ttl + PROMPT);
        const inner = await Promise.all([outcome(lock.acquire()), outcome(lock.tryAcquire())]);
        expect(inner).toMatchObject([{ reason: { code: 'LOCK_LOST' } }, { reason: { code: 'LOCK_LOST' } }]);
      });
      await expect(ended).rejects.toMatchObject({ code: 'LOCK_LOST' });
    },

    async 'an error inside leaves the outer hold as it is'(t) {
      const a = await t.open();
      const name = t.name();
      const lock = a.lock(name, { reentrant: true });
      await lock.run(async (outer) => {
        await expect(lock.run(() => Promise.reject(new Error('inner')))).rejects.toThrow('inner');
        expect([outer.isHeld(), await outer.verify()]).toEqual([true, true]);
      });
      expect((await t.inspect(name)).held).toBe(false);
    },
  },
};
