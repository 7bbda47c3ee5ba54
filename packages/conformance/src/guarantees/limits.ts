import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';
import { lossOf } from '../harness/party.js';
import { outcome, PROMPT, SHORT_WAIT, TIME_FACTOR, within } from '../harness/time.js';

/** `maxHold` ends a hold however long the work takes; `minHold` keeps the name taken after it. */
export const limits: Guarantee = {
  name: 'min and max hold',
  cases: {
    async 'renew-unbounded: at maxHold renewal stops, the signal aborts, and others can have the lock'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const ttl = t.physics.liveTtl();
      const maxHold = 2 * t.physics.effective(ttl);
      const hold = await a.acquire(name, { ttl, maxHold });
      const waiting = b.acquire(name, { ttl: t.physics.longTtl() });
      const { after, ...ended } = await outcome(within('the hold ends', lossOf(hold), maxHold + PROMPT));
      expect(ended).toEqual({ status: 'fulfilled', value: 'max-hold' });
      expect(hold.signal.reason).toMatchObject({ code: 'LOCK_LOST', lockName: name });
      expect(after).toBeLessThanOrEqual(maxHold + PROMPT);
      expect(after).toBeGreaterThan(maxHold * 0.8);
      expect((await within('the next is granted', waiting)).isHeld()).toBe(true);
      expect(hold.isHeld()).toBe(false);
    },

    async 'the claim is given back at maxHold, long before its ttl'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.longTtl(), maxHold: 200 });
      expect(hold.remaining()).toBeLessThanOrEqual(200);
      const next = await within('the next is granted', b.acquire(name));
      expect([hold.isHeld(), hold.signal.aborted]).toEqual([false, true]);
      expect(next.fencingToken).toBeGreaterThan(hold.fencingToken);
    },

    async 'extend() does not go past maxHold'(t) {
      const a = await t.open();
      const maxHold = 600 * TIME_FACTOR;
      const hold = await a.acquire(t.name(), { ttl: t.physics.longTtl(), maxHold });
      await hold.extend(t.physics.longTtl());
      expect(hold.remaining()).toBeLessThanOrEqual(maxHold);
      expect(await within('the hold ends', lossOf(hold), maxHold + PROMPT)).toBe('max-hold');
    },

    async 'maxHold longer than the work is no matter'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name(), { maxHold: '1h' });
      expect(await hold.release()).toBe(true);
      expect(hold.signal.aborted).toBe(false);
    },

    async 'minHold: release() is true and leaves a tail: held, without owner, granted to nobody'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.longTtl(), minHold: '1h' });
      expect(await hold.release()).toBe(true);
      expect([hold.isHeld(), await hold.release()]).toEqual([false, false]);
      const state = await t.inspect(name);
      expect(state).toMatchObject({ name, held: true });
      expect(state.owner).toBeUndefined();
      expect(await b.tryAcquire(name)).toBeNull();
      await expect(b.acquire(name, { wait: SHORT_WAIT })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
      expect((await t.list()).map((listed) => listed.name)).toEqual([name]);
      expect(await t.observer.locks.forceRelease(name)).toBe(true);
      expect((await b.acquire(name)).fencingToken).toBeGreaterThan(hold.fencingToken);
    },

    async 'a tail ends minHold after the acquisition, and the next waiter is granted then'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const minHold = 900 * TIME_FACTOR;
      const hold = await a.acquire(name, { ttl: t.physics.longTtl(), minHold });
      const acquired = performance.now();
      const waiting = b.acquire(name);
      await b.event('waiting', name);
      expect(await hold.release()).toBe(true);
      const next = await within('the next is granted', waiting, t.physics.effective(minHold) + PROMPT);
      // The server may count from its own grant, a moment before ours.
      expect(performance.now() - acquired).toBeGreaterThan(minHold * 0.9);
      expect(next.isHeld()).toBe(true);
    },

    async 'a hold that lasted longer than minHold leaves no tail'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const hold = await a.acquire(name, { minHold: 1 });
      await hold.extend();
      await hold.verify();
      expect(await hold.release()).toBe(true);
      expect((await within('the next is granted', b.acquire(name))).isHeld()).toBe(true);
    },

    async 'a tail outlives close() where minHold is kept by the server, and ends with the session elsewhere'(
      t,
    ) {
      const a = await t.open();
      const name = t.name();
      await a.acquire(name, { ttl: t.physics.longTtl(), minHold: '1h' });
      await a.locks.close();
      const kept = t.physics.tailOutlivesClose();
      expect((await t.inspect(name)).held).toBe(kept);
      expect(await t.observer.locks.forceRelease(name)).toBe(kept);
    },

    async 'a release with a tail whose answer was lost is asked for again, and the tail stays'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.longTtl(), minHold: '1h' });
      a.seam.dropAnswers('release', 1);
      expect(await hold.release()).toBe(true);
      expect((await t.inspect(name)).held).toBe(true);
      expect(await b.tryAcquire(name)).toBeNull();
      expect(await t.observer.locks.forceRelease(name)).toBe(true);
    },
  },

  withProcesses: {
    async 'a holder with minHold that dies unreleased frees at its ttl'(t) {
      const a = await t.open();
      const dying = await t.party();
      const name = t.name();
      const hold = await dying.acquire(name, { ttl: t.physics.shortTtl(), minHold: '1h' });
      await dying.die();
      await within('the lock is free', a.acquire(name), t.physics.freedAfterDeath(hold.ttl));
    },
  },
};
