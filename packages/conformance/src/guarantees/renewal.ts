import type { Grant } from '@holdfast/core';
import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';
import { lossOf } from '../harness/party.js';
import { elapse, outcome, PROMPT, within } from '../harness/time.js';

/** The watchdog keeps a hold alive, checks the owner, never brings back a lock that has gone; `extend` moves its end. */
export const renewal: Guarantee = {
  name: 'renewal',
  cases: {
    async 'a hold outlives its ttl for as long as it is renewed'(t) {
      const [a, b] = await t.pair();
      const hold = await a.acquire(t.name(), { ttl: t.physics.liveTtl() });
      const token = hold.fencingToken;
      // Renewed at a third of the ttl, or a little earlier: five times is longer than one ttl.
      await a.event('renewed', hold.name, 5, 3 * hold.ttl + PROMPT);
      expect(hold.isHeld()).toBe(true);
      expect(await hold.verify()).toBe(true);
      expect(await b.tryAcquire(hold.name)).toBeNull();
      expect(hold.fencingToken).toBe(token);
      expect((await t.inspect(hold.name)).owner).toBe(hold.owner);
    },

    async 'without renewal a hold ends at its ttl, and others can have the lock'(t) {
      const [a, b] = await t.pair();
      const hold = await a.acquire(t.name(), { ttl: t.physics.shortTtl(), renew: false });
      const waiting = b.acquire(hold.name);
      expect(await within('the loss is told', lossOf(hold), hold.ttl + PROMPT)).toBe('expired');
      const next = await within('the next is granted', waiting, t.physics.freedAfterDeath(hold.ttl));
      expect(next.fencingToken).toBeGreaterThan(hold.fencingToken);
      expect(a.seen('renewed', hold.name)).toEqual([]);
    },

    async 'renew-recreates: a late renewal does not take a lock that had gone and was used by another'(t) {
      const [a, b] = await t.pair();
      const hold = await a.acquire(t.name(), { ttl: t.physics.liveTtl() });
      a.seam.deafen();
      const gate = a.seam.gate('renew', 'before');
      await within('a renewal is sent', gate.arrived, hold.ttl + PROMPT);
      await t.observer.locks.forceRelease(hold.name);
      const between = await b.acquire(hold.name);
      expect(await between.release()).toBe(true);
      gate.open();
      await within('the loss is told', lossOf(hold), hold.ttl + PROMPT);
      expect(a.seen('lost', hold.name)).toHaveLength(1);
      expect(await t.inspect(hold.name)).toEqual({ name: hold.name, held: false, waiters: [] });
    },

    async 'a renewal of a lock that somebody else holds is refused, and leaves theirs as it is'(t) {
      const [a, b] = await t.pair();
      const hold = await a.acquire(t.name(), { ttl: t.physics.liveTtl() });
      a.seam.deafen();
      await t.observer.locks.forceRelease(hold.name);
      const theirs = await b.acquire(hold.name, { ttl: t.physics.longTtl() });
      const reason = await within('the loss is told', lossOf(hold), hold.ttl + PROMPT);
      // Not only its validity ran out: the backend said no.
      expect(reason).not.toBe('expired');
      expect(await t.inspect(hold.name)).toMatchObject({
        owner: theirs.owner,
        fencingToken: theirs.fencingToken,
      });
      expect(theirs.isHeld()).toBe(true);
    },

    async 'a renewal that fails is tried again: an error is neither a loss nor a renewal'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name(), { ttl: t.physics.liveTtl() });
      const mend = a.seam.refuse('renew');
      await within('a renewal is sent', a.seam.next('renew'), hold.ttl + PROMPT);
      const before = hold.remaining();
      expect(hold.isHeld()).toBe(true);
      await within('it is sent again', a.seam.next('renew'), hold.ttl + PROMPT);
      expect(hold.remaining()).toBeLessThan(before);
      mend();
      await a.event('renewed', hold.name, 3, 2 * hold.ttl + PROMPT);
      expect([hold.isHeld(), hold.signal.aborted]).toEqual([true, false]);
      expect(await hold.verify()).toBe(true);
    },

    async 'renewals whose answers are lost keep the lock, and are not believed'(t) {
      const [a, b] = await t.pair();
      const hold = await a.acquire(t.name(), { ttl: t.physics.liveTtl() });
      a.seam.dropAnswers('renew', 2);
      await within('a renewal is sent', a.seam.next('renew'), hold.ttl + PROMPT);
      await within('it is sent again', a.seam.next('renew'), hold.ttl + PROMPT);
      expect(a.seen('renewed', hold.name)).toEqual([]);
      await a.event('renewed', hold.name, 2, 2 * hold.ttl + PROMPT);
      expect(hold.isHeld()).toBe(true);
      expect(await b.tryAcquire(hold.name)).toBeNull();
    },

    async 'renew-dead-after-error: a lock is renewed after an earlier one of its name was lost'(t) {
      const a = await t.open();
      const name = t.name();
      const first = await a.acquire(name, { ttl: t.physics.shortTtl() });
      a.seam.refuse('renew', 'release');
      await within('the loss is told', lossOf(first), first.ttl + PROMPT);
      await outcome(first.release());
      a.seam.heal();
      const second = await within(
        'it can be had again',
        a.acquire(name, { ttl: t.physics.liveTtl() }),
        first.ttl + PROMPT,
      );
      await a.event('renewed', name, 5, 3 * second.ttl + PROMPT);
      expect([second.isHeld(), await second.verify()]).toEqual([true, true]);
    },

    async 'renew-outlives-release: what was released is renewed no more'(t) {
      const a = await t.open();
      const ttl = t.physics.shortTtl();
      const owners = new Set<string>();
      for (let round = 0; round < 20; round++) {
        const hold = await a.acquire(t.name(), { ttl });
        await hold.release();
        owners.add(hold.owner);
      }
      const renewedBefore = a.seam.count('renew');
      await elapse(t.physics.effective(ttl));
      const renewed = a.seam.calls
        .slice()
        .filter(({ method }) => method === 'renew')
        .slice(renewedBefore)
        .flatMap(({ args }) => (args[0] as readonly Grant[]).map(({ claim }) => claim.owner));
      expect(renewed.filter((owner) => owners.has(owner))).toEqual([]);
      expect(await t.list()).toEqual([]);
    },

    async 'renew-release-race: a renewal under way while the lock is released is no loss'(t) {
      const a = await t.open();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.liveTtl() });
      const gate = a.seam.gate('renew', 'before');
      await within('a renewal is sent', gate.arrived, hold.ttl + PROMPT);
      expect(await hold.release()).toBe(true);
      const next = await a.acquire(name, { ttl: t.physics.longTtl() });
      gate.open();
      await elapse(50);
      expect(a.seen('lost', name)).toEqual([]);
      expect([hold.signal.aborted, next.isHeld(), await next.verify()]).toEqual([false, true, true]);
    },

    async 'renewals that are due together travel together'(t) {
      const a = await t.open();
      const ttl = t.physics.liveTtl();
      const names = Array.from({ length: 60 }, () => t.name());
      const holds = await Promise.all(names.map((name) => a.acquire(name, { ttl })));
      await Promise.all(
        names.map((name) => a.event('renewed', name, 1, 2 * t.physics.effective(ttl) + PROMPT)),
      );
      const batches = a.seam.calls
        .filter(({ method }) => method === 'renew')
        .map(({ args }) => (args[0] as readonly Grant[]).length);
      expect(batches.length).toBeLessThanOrEqual(names.length / 2);
      expect(holds.map((hold) => hold.isHeld())).toEqual(names.map(() => true));
    },

    async 'each hold of a batch hears its own answer'(t) {
      const [a, b] = await t.pair();
      const ttl = t.physics.liveTtl();
      const names = Array.from({ length: 6 }, () => t.name());
      const holds = await Promise.all(names.map((name) => a.acquire(name, { ttl })));
      a.seam.deafen();
      const gone = holds.filter((_, index) => index % 3 === 1);
      for (const hold of gone) await t.observer.locks.forceRelease(hold.name);
      const theirs = await Promise.all(
        gone.map((hold) => b.acquire(hold.name, { ttl: t.physics.longTtl() })),
      );
      await within('the losses are told', Promise.all(gone.map(lossOf)), t.physics.effective(ttl) + PROMPT);
      expect(holds.map((hold) => hold.isHeld())).toEqual(holds.map((hold) => !gone.includes(hold)));
      expect(theirs.map((hold) => hold.isHeld())).toEqual([true, true]);
    },

    async 'extend() sets the ttl, up'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name(), { ttl: t.physics.liveTtl(), renew: false });
      const longer = t.physics.effective(t.physics.liveTtl() * 3);
      await hold.extend(longer);
      expect(hold.ttl).toBe(longer);
      expect(hold.remaining()).toBeLessThanOrEqual(longer);
      expect(hold.remaining()).toBeGreaterThan(t.physics.leastLeft(longer));
      expect(a.seen('renewed', hold.name)).toMatchObject([{ owner: hold.owner, ttl: longer }]);
    },

    async 'extend() sets the ttl, down: the shorter one counts here at once, and for renewal'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name(), { ttl: t.physics.longTtl() });
      const shorter = t.physics.liveTtl();
      await hold.extend(shorter);
      expect(hold.ttl).toBe(t.physics.effective(shorter));
      expect(hold.remaining()).toBeLessThanOrEqual(hold.ttl);
      // One renewal is the extension itself.
      await a.event('renewed', hold.name, 3, 2 * hold.ttl + PROMPT);
      expect(hold.isHeld()).toBe(true);
    },

    async 'extend-many-times: a hold can be extended again and again, with one token'(t) {
      const [a, b] = await t.pair();
      const hold = await a.acquire(t.name(), { ttl: t.physics.liveTtl(), renew: false });
      const token = hold.fencingToken;
      for (let count = 0; count < 4; count++) {
        await elapse(hold.ttl / 2);
        await hold.extend();
      }
      expect([hold.isHeld(), await hold.verify()]).toEqual([true, true]);
      expect(hold.fencingToken).toBe(token);
      expect(await b.tryAcquire(hold.name)).toBeNull();
    },

    async 'extend-after-expiry-allowed: what has gone cannot be extended, whether another holds it or nobody'(
      t,
    ) {
      const [a, b] = await t.pair();
      const [free, taken] = [t.name('free'), t.name('taken')];
      const ttl = t.physics.longTtl();
      const ours = await Promise.all([a.acquire(free, { ttl }), a.acquire(taken, { ttl })]);
      a.seam.deafen();
      await t.observer.locks.forceRelease(free);
      await t.observer.locks.forceRelease(taken);
      const theirs = await b.acquire(taken, { ttl });
      for (const hold of ours) {
        await expect(hold.extend(ttl)).rejects.toMatchObject({ code: 'LOCK_LOST', lockName: hold.name });
        expect([hold.isHeld(), hold.signal.aborted]).toEqual([false, true]);
      }
      expect((await t.inspect(free)).held).toBe(false);
      expect((await t.inspect(taken)).owner).toBe(theirs.owner);
    },

    async 'extend-seconds-vs-ms: an extension ends when it says'(t) {
      const [a, b] = await t.pair();
      const ttl = t.physics.shortTtl();
      const hold = await a.acquire(t.name(), { ttl, renew: false });
      await hold.extend(ttl);
      const taken = await outcome(
        within('the next is granted', b.acquire(hold.name), t.physics.freedAfterDeath(ttl)),
      );
      expect(taken).toMatchObject({ status: 'fulfilled' });
      expect(hold.signal.aborted).toBe(true);
    },

    async 'an extension whose answer is lost is asked for again'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name(), { ttl: t.physics.longTtl() });
      a.seam.dropAnswers('extend', 1);
      await hold.extend(t.physics.longTtl());
      expect([hold.isHeld(), a.seam.count('extend')]).toEqual([true, 2]);
    },

    async 'an extension does not lose the lock to a renewal that was sent before it'(t) {
      const a = await t.open();
      const ttl = t.physics.liveTtl();
      const hold = await a.acquire(t.name(), { ttl });
      const gate = a.seam.gate('renew', 'after');
      await within('a renewal is sent', gate.arrived, hold.ttl + PROMPT);
      const longer = t.physics.effective(ttl * 4);
      await hold.extend(longer);
      gate.open();
      await elapse(20);
      expect(hold.ttl).toBe(longer);
      expect(hold.remaining()).toBeGreaterThan(t.physics.leastLeft(longer));
    },

    async 'an extension without an argument keeps the ttl and starts it anew'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name(), { ttl: t.physics.liveTtl(), renew: false });
      await elapse(hold.ttl / 2);
      await hold.extend();
      expect(hold.ttl).toBe(t.physics.effective(t.physics.liveTtl()));
      expect(hold.remaining()).toBeGreaterThan(t.physics.leastLeft(hold.ttl));
    },
  },
};
