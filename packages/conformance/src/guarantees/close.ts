import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';
import { elapse, IMPATIENT, outcome, PROMPT, within } from '../harness/time.js';

/** `close()` gives everything back, lets nothing new in, and leaves nothing running. */
export const close: Guarantee = {
  name: 'close',
  cases: {
    async 'close() releases every handle still held'(t) {
      const [a, b] = await t.pair();
      const names = Array.from({ length: 5 }, () => t.name());
      const holds = await Promise.all(names.map((name) => a.acquire(name, { ttl: t.physics.longTtl() })));
      await a.locks.close();
      expect(holds.map((hold) => hold.isHeld())).toEqual(names.map(() => false));
      expect(await t.list()).toEqual([]);
      expect(
        (await Promise.all(names.map((name) => b.tryAcquire(name)))).every((hold) => hold !== null),
      ).toBe(true);
      expect(await holds[0]?.release()).toBe(false);
    },

    async 'close() lets the releases under way arrive, and their answers are true'(t) {
      const [a, b] = await t.pair();
      const names = Array.from({ length: 5 }, () => t.name());
      const holds = await Promise.all(names.map((name) => a.acquire(name, { ttl: t.physics.longTtl() })));
      const releases = holds.map((hold) => hold.release());
      await within('close() ends', a.locks.close(), 3 * PROMPT);
      expect(await Promise.all(releases)).toEqual(names.map(() => true));
      const taken = await Promise.all(names.map((name) => b.tryAcquire(name)));
      expect(taken.map((hold) => hold?.isHeld())).toEqual(names.map(() => true));
    },

    async 'after close() every call is LocksClosedError, and nothing is sent'(t) {
      const a = await t.open();
      const name = t.name();
      const lock = a.lock(name);
      await a.locks.close();
      const sent = a.seam.calls.length;
      const closed = { code: 'LOCKS_CLOSED' };
      await expect(lock.acquire()).rejects.toMatchObject({ ...closed, lockName: name });
      await expect(lock.tryAcquire()).rejects.toMatchObject(closed);
      await expect(lock.run(() => 'never')).rejects.toMatchObject(closed);
      await expect(lock.tryRun(() => 'never')).rejects.toMatchObject(closed);
      await expect(a.locks.inspect(name)).rejects.toMatchObject(closed);
      await expect(a.locks.forceRelease(name)).rejects.toMatchObject(closed);
      await expect(a.locks.adopt('anything')).rejects.toMatchObject(closed);
      await expect(a.locks.list()[Symbol.asyncIterator]().next()).rejects.toMatchObject(closed);
      expect(a.seam.calls.length).toBe(sent);
    },

    async 'waiting acquisitions fail with LocksClosedError and leave no entry'(t) {
      const [a, b, c] = await t.trio();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.longTtl() });
      const waits = [outcome(b.acquire(name)), outcome(b.acquire(name, { wait: 60_000 }))];
      await b.event('waiting', name, 2);
      const next = c.acquire(name, { ttl: t.physics.longTtl() });
      await c.event('waiting', name);
      await within('close() ends', b.locks.close(), 3 * PROMPT);
      expect(await Promise.all(waits)).toMatchObject([
        { status: 'rejected', reason: { code: 'LOCKS_CLOSED', lockName: name } },
        { status: 'rejected', reason: { code: 'LOCKS_CLOSED', lockName: name } },
      ]);
      await t.queueShrinks(name, t.physics.queued(['c']).length);
      await hold.release();
      expect((await within('the next is granted', next)).isHeld()).toBe(true);
    },

    async 'an acquisition that is granted while the instance closes is given back'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const gate = a.seam.gate('attempt', 'after');
      const given = outcome(a.acquire(name, { ttl: t.physics.longTtl() }));
      await within('it is granted at the server', gate.arrived);
      const closed = a.locks.close();
      expect(await within('the caller is told', given)).toMatchObject({ reason: { code: 'LOCKS_CLOSED' } });
      gate.open();
      await within('close() ends', closed, 3 * PROMPT);
      expect((await within('it was given back', b.acquire(name))).isHeld()).toBe(true);
    },

    async 'close() is idempotent, and disposal is close()'(t) {
      const a = await t.open();
      await Promise.all([a.locks.close(), a.locks.close()]);
      await a.locks.close();
      await a.locks[Symbol.asyncDispose]();
      await expect(a.acquire(t.name())).rejects.toMatchObject({ code: 'LOCKS_CLOSED' });
    },

    async 'after close() no timer is left, whatever was going on'(t) {
      const a = await t.open();
      const taken = t.name();
      await t.observer.acquire(taken, { ttl: t.physics.longTtl() });
      await Promise.all(Array.from({ length: 5 }, () => a.acquire(t.name(), { ttl: t.physics.shortTtl() })));
      const waits = [outcome(a.acquire(taken)), outcome(a.acquire(taken, { wait: '1h' }))];
      await a.event('waiting', taken, 2);
      await a.locks.close();
      await Promise.all(waits);
      await within('no timer is left', a.clock.idle());
      await elapse(50);
      expect(a.clock.timers).toBe(0);
    },

    async 'after close() nothing is renewed'(t) {
      const a = await t.open();
      const ttl = t.physics.shortTtl();
      await a.acquire(t.name(), { ttl });
      await a.locks.close();
      const renewed = a.seam.count('renew');
      await elapse(t.physics.effective(ttl));
      expect(a.seam.count('renew')).toBe(renewed);
    },

    async 'close() ends although the backend does not answer'(t) {
      const a = await t.open(IMPATIENT);
      const hold = await a.acquire(t.name(), { ttl: t.physics.shortTtl() });
      a.seam.cut();
      await within('close() ends', a.locks.close(), 3 * PROMPT);
      expect(hold.isHeld()).toBe(false);
      a.seam.heal();
      // Nobody gave it back: on a session backend the end of the session frees it, elsewhere its ttl.
      await within('it is free', t.observer.acquire(hold.name), t.physics.freedAfterDeath(hold.ttl));
      await t.observer.locks.forceRelease(hold.name);
    },

    async 'closing one instance does not touch another'(t) {
      const [a, b] = await t.pair();
      const ours = await a.acquire(t.name(), { ttl: t.physics.longTtl() });
      const theirs = await b.acquire(t.name(), { ttl: t.physics.longTtl() });
      await a.locks.close();
      expect([ours.isHeld(), theirs.isHeld(), await theirs.verify()]).toEqual([false, true, true]);
      expect((await t.list()).map(({ owner }) => owner)).toEqual([theirs.owner]);
    },
  },
};
