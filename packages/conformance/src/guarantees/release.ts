import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';
import { lossOf } from '../harness/party.js';
import { elapse, IMPATIENT, outcome, PROMPT, within } from '../harness/time.js';

/** Release gives back what is ours, once, and never what is somebody else's. */
export const release: Guarantee = {
  name: 'release',
  cases: {
    async 'the first release is true, every later one false'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name());
      expect([await hold.release(), await hold.release(), await hold.release()]).toEqual([
        true,
        false,
        false,
      ]);
      expect((await t.inspect(hold.name)).held).toBe(false);
    },

    async 'of releases at the same time one is true'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name());
      const released = await Promise.all([hold.release(), hold.release(), hold.release()]);
      expect(released.filter((was) => was)).toHaveLength(1);
    },

    async 'release-expired-loops: an expired lock is released with false, at once'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name(), { ttl: t.physics.shortTtl(), renew: false });
      await within('it expires', lossOf(hold), hold.ttl + PROMPT);
      expect(await within('release() answers', hold.release(), PROMPT)).toBe(false);
    },

    async 'release never frees a lock that somebody else holds'(t) {
      const [a, b, c] = await t.trio();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.longTtl() });
      a.seam.deafen();
      await t.observer.locks.forceRelease(name);
      const theirs = await b.acquire(name, { ttl: t.physics.longTtl() });
      expect(await hold.release()).toBe(false);
      expect(await theirs.verify()).toBe(true);
      expect(await c.tryAcquire(name)).toBeNull();
      expect((await t.inspect(name)).owner).toBe(theirs.owner);
    },

    async 'the background clean-up of a lost hold never frees what somebody else holds'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.shortTtl() });
      a.seam.deafen();
      const gate = a.seam.gate('release', 'before');
      a.seam.hang('renew');
      await t.observer.locks.forceRelease(name);
      const theirs = await b.acquire(name, { ttl: t.physics.longTtl() });
      await within('the loss is told', lossOf(hold), hold.ttl + PROMPT);
      await within('the clean-up is sent', gate.arrived);
      gate.open();
      await elapse(50);
      expect(await theirs.verify()).toBe(true);
      expect((await t.inspect(name)).owner).toBe(theirs.owner);
    },

    async 'a release whose answer was lost is asked for again, and was this one'(t) {
      const [a, b] = await t.pair();
      const hold = await a.acquire(t.name(), { ttl: t.physics.longTtl() });
      a.seam.dropAnswers('release', 1);
      expect(await hold.release()).toBe(true);
      expect(await hold.release()).toBe(false);
      expect((await b.acquire(hold.name)).isHeld()).toBe(true);
    },

    async 'stale-release-deletes-newer: releasing an old handle again does not touch the new hold'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const first = await a.acquire(name, { ttl: t.physics.longTtl() });
      a.seam.dropAnswers('release', 1);
      await first.release();
      const second = await a.acquire(name, { ttl: t.physics.longTtl() });
      const { fencingToken } = await t.inspect(name);
      expect(await first.release()).toBe(false);
      expect([second.isHeld(), await second.verify()]).toEqual([true, true]);
      expect((await t.inspect(name)).fencingToken).toBe(fencingToken);
      expect(await b.tryAcquire(name)).toBeNull();
    },

    async 'release-forgets-token: a release that failed can be tried again, and frees the lock'(t) {
      const a = await t.open(IMPATIENT);
      const hold = await a.acquire(t.name(), { ttl: t.physics.longTtl() });
      const mend = a.seam.refuse('release');
      await expect(hold.release()).rejects.toMatchObject({
        code: 'BACKEND_UNAVAILABLE',
        lockName: hold.name,
      });
      expect(hold.isHeld()).toBe(false);
      mend();
      expect(await hold.release()).toBe(true);
      expect((await t.inspect(hold.name)).held).toBe(false);
    },

    async 'local-lock-stuck: after a release that failed, the lock can be had again in the same process'(t) {
      const a = await t.open(IMPATIENT);
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.shortTtl() });
      const mend = a.seam.refuse('release');
      await expect(hold.release()).rejects.toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
      mend();
      expect(
        (await within('it is free', a.acquire(name), t.physics.freedAfterDeath(hold.ttl))).isHeld(),
      ).toBe(true);
    },

    async 'disposal never rejects: what went wrong is told as an event'(t) {
      const a = await t.open(IMPATIENT);
      const hold = await a.acquire(t.name(), { ttl: t.physics.longTtl() });
      const mend = a.seam.refuse('release');
      await hold[Symbol.asyncDispose]();
      mend();
      await a.event('error', hold.name);
      expect(a.seen('error', hold.name)[0]?.error).toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
    },

    async 'disposal releases'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name());
      await hold[Symbol.asyncDispose]();
      expect(hold.isHeld()).toBe(false);
      expect((await t.inspect(hold.name)).held).toBe(false);
      await hold[Symbol.asyncDispose]();
    },

    async 'release-race-with-expiry: a release around the moment of expiry is true or false, never an error'(
      t,
    ) {
      const a = await t.open();
      const ttl = t.physics.shortTtl();
      const holds = await Promise.all(
        Array.from({ length: 30 }, () => a.acquire(t.name(), { ttl, renew: false })),
      );
      const released = await Promise.all(
        holds.map(async (hold, index) => {
          await elapse(Math.max(0, hold.remaining() + index - 15));
          return outcome(hold.release());
        }),
      );
      expect(released.map(({ status }) => status)).toEqual(holds.map(() => 'fulfilled'));
      expect(holds.map((hold) => hold.isHeld())).toEqual(holds.map(() => false));
    },

    async 'a hold that is being released counts as held no more'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name(), { ttl: t.physics.longTtl() });
      const gate = a.seam.gate('release', 'before');
      const released = hold.release();
      await within('the release is sent', gate.arrived);
      expect([hold.isHeld(), hold.remaining()]).toEqual([false, 0]);
      gate.open();
      expect(await released).toBe(true);
    },

    async 'registry-grows: names that were released leave nothing at the server'(t) {
      const [a, b] = await t.pair();
      await Promise.all(
        Array.from({ length: 40 }, async (_, index) => {
          const hold = await (index % 2 ? a : b).acquire(t.name());
          await hold.release();
        }),
      );
      expect(await t.list()).toEqual([]);
    },
  },
};
