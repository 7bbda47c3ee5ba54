import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';
import { lossOf } from '../harness/party.js';
import { elapse, eventually, PROMPT, within } from '../harness/time.js';

/** A request may take its time: late answers are what these cases are about. */
const PATIENT = { commandTimeout: 600_000 };

/** `isHeld()` is true only while the server cannot have granted the lock to anybody else. */
export const validity: Guarantee = {
  name: 'validity',
  cases: {
    async 'validity counts from before the request was sent, less its margin'(t) {
      const a = await t.open(PATIENT);
      const ttl = t.physics.liveTtl();
      const delay = t.physics.validity(ttl) / 4;
      a.seam.delayAnswers('attempt', delay);
      const hold = await a.acquire(t.name(), { ttl, renew: false });
      const left = hold.remaining();
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThanOrEqual(t.physics.mostLeft(ttl, delay));
    },

    async 'a renewal counts from before it was sent'(t) {
      const a = await t.open(PATIENT);
      const ttl = t.physics.liveTtl();
      const hold = await a.acquire(t.name(), { ttl });
      const delay = t.physics.validity(ttl) / 4;
      a.seam.delayAnswers('renew', delay);
      const leftWhenTold = new Promise<number>((resolve) => {
        a.locks.on('renewed', () => resolve(hold.remaining()));
      });
      const left = await within('a renewal is answered', leftWhenTold, hold.ttl + PROMPT);
      expect(left).toBeLessThanOrEqual(t.physics.mostLeft(ttl, delay));
    },

    async 'an extension counts from before it was sent'(t) {
      const a = await t.open(PATIENT);
      const ttl = t.physics.liveTtl();
      const hold = await a.acquire(t.name(), { ttl, renew: false });
      const delay = t.physics.validity(ttl) / 8;
      a.seam.delayAnswers('extend', delay);
      await hold.extend(ttl);
      expect(hold.remaining()).toBeLessThanOrEqual(t.physics.mostLeft(ttl, delay));
    },

    async 'quorum-slow-validity: a grant that arrives with no validity left is not handed out'(t) {
      const a = await t.open(PATIENT);
      const name = t.name();
      const ttl = t.physics.shortTtl();
      a.seam.delayAnswers('attempt', t.physics.effective(ttl) * 1.2, 1);
      const hold = await within(
        'a later attempt is granted',
        a.acquire(name, { ttl, renew: false }),
        2 * t.physics.effective(ttl) + PROMPT,
      );
      expect(hold.isHeld()).toBe(true);
      expect(hold.remaining()).toBeGreaterThan(0);
    },

    async 'remaining() falls with time, and is 0 after release'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name(), { ttl: t.physics.longTtl() });
      const before = hold.remaining();
      await elapse(20);
      const after = hold.remaining();
      expect(after).toBeLessThan(before);
      expect(before).toBeLessThanOrEqual(hold.ttl);
      expect(hold.isHeld()).toBe(true);
      await hold.release();
      expect([hold.remaining(), hold.isHeld()]).toEqual([0, false]);
    },

    async 'isHeld() is false from the moment that remaining() reaches 0, and the signal aborts then'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name(), { ttl: t.physics.shortTtl(), renew: false });
      const lost = lossOf(hold);
      await eventually('validity runs out', () => hold.remaining() === 0, hold.ttl + PROMPT);
      expect(hold.isHeld()).toBe(false);
      expect(await within('the signal aborts', lost)).toBe('expired');
    },

    async 'clock-jump: a wall clock that is set changes nothing'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const hour = 3_600_000;
      const hold = await a.acquire(name, { ttl: t.physics.longTtl() });
      const waiting = b.acquire(name, { ttl: t.physics.longTtl() });
      await b.event('waiting', name);
      const before = hold.remaining();
      for (const step of [hour, -2 * hour]) {
        a.clock.stepWall(step);
        b.clock.stepWall(step);
        expect(hold.isHeld()).toBe(true);
        expect(Math.abs(before - hold.remaining())).toBeLessThan(PROMPT);
        expect(await hold.verify()).toBe(true);
        expect(await b.tryAcquire(name)).toBeNull();
      }
      expect(b.seen('acquired', name)).toEqual([]);
      await hold.release();
      expect((await within('the waiter is granted at the release', waiting)).isHeld()).toBe(true);
    },

    async 'clock-jump: an hour back does not lengthen a hold'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name(), { ttl: t.physics.shortTtl(), renew: false });
      a.clock.stepWall(-3_600_000);
      expect(await within('it ends at its ttl', lossOf(hold), hold.ttl + PROMPT)).toBe('expired');
      expect(hold.isHeld()).toBe(false);
    },

    async 'time that the machine was suspended counts'(t) {
      const a = await t.open();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.longTtl() });
      expect(hold.isHeld()).toBe(true);
      a.clock.suspend(hold.ttl + 1000);
      expect([hold.isHeld(), hold.remaining()]).toEqual([false, 0]);
      expect(await within('the loss is told', lossOf(hold))).toBe('expired');
    },

    async 'wait-longer-than-ttl-refused: a wait longer than the ttl is no fault'(t) {
      const a = await t.open();
      const ttl = t.physics.effective(5000);
      const hold = await a.acquire(t.name(), { ttl, wait: 12 * ttl });
      expect([hold.isHeld(), hold.ttl]).toEqual([true, ttl]);
    },
  },

  withProcesses: {
    async 'event-loop-block: after a blocked event loop, isHeld() is false at once and the loss is told once'(
      t,
    ) {
      const child = await t.child();
      const name = t.name();
      const hold = await child.acquire(name, { ttl: t.physics.shortTtl() });
      const lost = child.lost(hold.owner);
      expect(await child.block(hold.owner, 1.2 * hold.ttl)).toBe(false);
      expect(await within('the loss is told', lost)).toBe('expired');
      expect(await child.isHeld(hold.owner)).toBe(false);
      expect(await child.release(hold.owner)).toBe(false);
      const again = await within('the name can be had again', child.acquire(name), hold.ttl + PROMPT);
      expect(BigInt(again.fencingToken)).toBeGreaterThan(BigInt(hold.fencingToken));
    },

    async 'a process that was stopped past its ttl does not believe in its lock when it goes on'(t) {
      const child = await t.child();
      const hold = await child.acquire(t.name(), { ttl: t.physics.shortTtl() });
      const lost = child.lost(hold.owner);
      child.stop();
      await elapse(1.2 * hold.ttl);
      child.resume();
      expect(await child.isHeld(hold.owner)).toBe(false);
      expect(await within('the loss is told', lost)).toMatch(/^(expired|superseded|session)$/);
    },
  },
};
