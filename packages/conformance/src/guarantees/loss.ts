import { LockLostError } from '@holdfast/core';
import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';
import { lossOf } from '../harness/party.js';
import { defer, elapse, outcome, PROMPT, within } from '../harness/time.js';

/** Loss is signalled before anyone else can hold, once, and is final. */
export const loss: Guarantee = {
  name: 'loss',
  cases: {
    async 'loss is signalled before anyone else holds'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.shortTtl() });
      const lost = lossOf(hold);
      const waiting = b.acquire(name, { ttl: t.physics.longTtl() }).then((next) => ({
        next,
        believed: hold.isHeld(),
        told: hold.signal.aborted,
      }));
      await b.event('waiting', name);
      a.seam.cut();
      expect(await within('the loss is told', lost, hold.ttl + PROMPT)).toBe('expired');
      // On a session backend the session lives on, and only giving back frees the name: the line is mended.
      a.seam.heal();
      const { next, believed, told } = await within(
        'the next is granted',
        waiting,
        t.physics.freedAfterDeath(hold.ttl),
      );
      expect({ believed, told }).toEqual({ believed: false, told: true });
      expect(next.fencingToken).toBeGreaterThan(hold.fencingToken);
    },

    async 'partition-not-noticed: silence is a loss when validity ends, not when the network says so'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name(), { ttl: t.physics.shortTtl() });
      await a.event('renewed', hold.name, 1, hold.ttl + PROMPT);
      a.seam.hang('renew', 'release', 'verify', 'inspect');
      const left = hold.remaining();
      const { after } = await outcome(within('the loss is told', lossOf(hold), hold.ttl + PROMPT));
      expect(left).toBeGreaterThan(0);
      expect(after).toBeLessThan(left + PROMPT);
      expect([hold.isHeld(), hold.remaining()]).toEqual([false, 0]);
    },

    async 'the signal aborts with a LockLostError that names the lock and why'(t) {
      const a = await t.open();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.shortTtl(), renew: false });
      await within('the loss is told', lossOf(hold), hold.ttl + PROMPT);
      const { reason } = hold.signal;
      expect(reason).toBeInstanceOf(LockLostError);
      expect(reason).toMatchObject({ code: 'LOCK_LOST', lockName: name, reason: 'expired' });
      expect(reason.message).toContain(JSON.stringify(name));
      expect(a.seen('lost', name)).toMatchObject([{ owner: hold.owner, error: reason }]);
    },

    async 'a lost handle: release false, verify false, extend rejects'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name(), { ttl: t.physics.shortTtl(), renew: false });
      await within('the loss is told', lossOf(hold), hold.ttl + PROMPT);
      expect(await hold.verify()).toBe(false);
      await expect(hold.extend()).rejects.toMatchObject({ code: 'LOCK_LOST', lockName: hold.name });
      expect(await hold.release()).toBe(false);
      expect(await hold.release()).toBe(false);
      expect([hold.isHeld(), hold.remaining()]).toEqual([false, 0]);
    },

    async 'abort-still-waits-release: giving back a lost lock waits for nobody'(t) {
      const a = await t.open();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.shortTtl() });
      a.seam.hang('renew', 'release', 'verify', 'inspect');
      await within('the loss is told', lossOf(hold), hold.ttl + PROMPT);
      expect(await within('release() answers without the server', hold.release(), PROMPT / 4)).toBe(false);
    },

    async 'a lost hold is given back in the background'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.shortTtl() });
      await hold.extend(t.physics.longTtl());
      await hold.extend(t.physics.shortTtl());
      // The server still keeps the long ttl: only giving back can free the name in time.
      const held = a.seam.refuse('renew', 'extend');
      await within('the loss is told', lossOf(hold), hold.ttl + PROMPT);
      held();
      expect((await within('the name is free', b.acquire(name))).fencingToken).toBeGreaterThan(
        hold.fencingToken,
      );
    },

    async 'loss is final: a late answer does not bring the hold back'(t) {
      const a = await t.open();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.shortTtl() });
      const gate = a.seam.gate('renew', 'after');
      a.seam.hang('release');
      await within('a renewal is sent', gate.arrived, hold.ttl + PROMPT);
      await within('the loss is told', lossOf(hold), hold.ttl + PROMPT);
      gate.open();
      await elapse(20);
      expect([hold.isHeld(), hold.remaining()]).toEqual([false, 0]);
      expect(a.seen('lost', name)).toHaveLength(1);
      await expect(hold.extend()).rejects.toMatchObject({ code: 'LOCK_LOST' });
    },

    async 'a lock that somebody else was given is lost at the next renewal'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.shortTtl() });
      a.seam.deafen();
      await t.observer.locks.forceRelease(name);
      const theirs = await b.acquire(name, { ttl: t.physics.longTtl() });
      const reason = await within('the loss is told', lossOf(hold), hold.ttl + PROMPT);
      expect(reason).toMatch(/^(superseded|forced|session)$/);
      expect(await theirs.verify()).toBe(true);
      expect(await hold.release()).toBe(false);
      expect((await t.inspect(name)).owner).toBe(theirs.owner);
    },

    async 'loss is told once, to the signal and to the listeners'(t) {
      const a = await t.open();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.liveTtl() });
      let aborts = 0;
      hold.signal.addEventListener('abort', () => aborts++);
      await t.observer.locks.forceRelease(name);
      await within('the loss is told', lossOf(hold), hold.ttl + PROMPT);
      await Promise.allSettled([hold.extend(), hold.verify(), hold.release()]);
      await elapse(hold.ttl);
      expect({ aborts, lost: a.seen('lost', name).length }).toEqual({ aborts: 1, lost: 1 });
      expect(a.seen('released', name)).toEqual([]);
    },

    async 'a released handle is not a lost one'(t) {
      const a = await t.open();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.shortTtl() });
      await hold.release();
      await elapse(1.2 * hold.ttl);
      expect(hold.signal.aborted).toBe(false);
      expect(a.seen('lost', name)).toEqual([]);
    },

    async 'many may listen to the signal of one hold'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name());
      const warned = defer<Error>();
      const listen = (warning: Error): void => {
        if (warning.name === 'MaxListenersExceededWarning') warned.resolve(warning);
      };
      process.on('warning', listen);
      t.atEnd(() => process.off('warning', listen));
      for (let count = 0; count < 30; count++) hold.signal.addEventListener('abort', () => count);
      expect(await Promise.race([warned.promise, elapse(50)])).toBeUndefined();
    },
  },

  withProcesses: {
    async 'the lock of a holder that died is free when its time is up, and not before'(t) {
      const a = await t.open();
      const name = t.name();
      const dying = await t.party();
      const hold = await dying.acquire(name, { ttl: t.physics.shortTtl() });
      const waiting = a.acquire(name);
      await a.event('waiting', name);
      await dying.die();
      expect(await a.tryAcquire(name)).toBeNull();
      const next = await within('the waiter is granted', waiting, t.physics.freedAfterDeath(hold.ttl));
      expect(next.fencingToken).toBeGreaterThan(hold.fencingToken);
    },

    async 'blpop-wait-too-long: who comes late waits for what is left of the ttl, not for a whole one'(t) {
      const a = await t.open();
      const name = t.name();
      const dying = await t.party();
      const ttl = t.physics.effective(5 * PROMPT);
      const hold = await dying.acquire(name, { ttl: t.physics.shortTtl() });
      await dying.die();
      await elapse(0.7 * hold.ttl);
      const { after } = await outcome(
        within('granted', a.acquire(name, { ttl }), t.physics.freedAfterDeath(hold.ttl)),
      );
      expect(after).toBeLessThan(t.physics.freedAfterDeath(hold.ttl));
    },

    async 'setnx-without-ttl: whenever a process is killed, what it had is free after its ttl'(t) {
      const a = await t.open();
      const names = Array.from({ length: 3 }, () => t.name());
      const ttl = t.physics.shortTtl();
      for (const [index, name] of names.entries()) {
        const child = await t.child();
        const running = outcome(child.compete(name, 10_000, `${t.insidePath()}-${index}`, { ttl }));
        await within('it has had a turn', child.entered(name));
        await elapse(7 * index);
        await child.kill();
        expect((await running).status).toBe('rejected');
      }
      const taken = await within(
        'all are free',
        Promise.all(names.map((name) => a.acquire(name))),
        t.physics.freedAfterDeath(ttl),
      );
      expect(taken.map((hold) => hold.isHeld())).toEqual(names.map(() => true));
    },

    async 'crash-waits-long-ttl: however long a dead holder had held, its lock is free after one ttl'(t) {
      const a = await t.open();
      const name = t.name();
      const dying = await t.party();
      const hold = await dying.acquire(name, { ttl: t.physics.liveTtl() });
      await elapse(1.5 * hold.ttl);
      expect(await a.tryAcquire(name)).toBeNull();
      await dying.die();
      await within('the name is free', a.acquire(name), t.physics.freedAfterDeath(hold.ttl));
    },
  },
};
