import { getEventListeners } from 'node:events';
import { BackendError, LockTimeoutError } from '@holdfast/core';
import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';
import { defer, elapse, outcome, PROMPT, SHORT_WAIT, within } from '../harness/time.js';

/** An acquisition ends when it should, by grant, deadline, abort or close, and leaves nothing behind. */
export const waiting: Guarantee = {
  name: 'waiting',
  cases: {
    async 'a waiter is granted at the release, long before any ttl ends'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.longTtl() });
      const waiting = b.acquire(name, { ttl: t.physics.longTtl() });
      await b.event('waiting', name);
      await hold.release();
      expect((await within('the waiter is granted', waiting)).isHeld()).toBe(true);
    },

    async 'timeout-zero-and-negative: wait 0 is one attempt: held if free, LockTimeoutError if not'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const hold = await a.acquire(name, { wait: 0 });
      expect(hold.isHeld()).toBe(true);
      await expect(b.acquire(name, { wait: 0 })).rejects.toBeInstanceOf(LockTimeoutError);
      expect(b.seam.count('attempt')).toBe(1);
      await expect(b.acquire(name, { wait: -1 })).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        argument: 'wait',
      });
      expect(b.seam.count('attempt')).toBe(1);
    },

    async 'timeout-zero-blocks: no wait and a short one end at once, and leave no waiter'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      await a.acquire(name, { ttl: t.physics.longTtl() });
      const ended = await Promise.all([
        outcome(b.acquire(name, { wait: 0 })),
        outcome(b.acquire(name, { wait: 1 })),
      ]);
      for (const { status, after } of ended) {
        expect(status).toBe('rejected');
        expect(after).toBeLessThan(PROMPT);
      }
      expect(await b.tryAcquire(name)).toBeNull();
      await t.queueShrinks(name);
    },

    async 'a wait that runs out says who holds the lock'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.longTtl() });
      const wait = SHORT_WAIT;
      const { status, after, ...rest } = await outcome(b.acquire(name, { wait }));
      expect(status).toBe('rejected');
      expect(rest).toMatchObject({
        reason: { code: 'LOCK_TIMEOUT', lockName: name, holder: { owner: hold.owner } },
      });
      expect(after).toBeGreaterThan(wait * 0.95);
      expect(after).toBeLessThan(wait + PROMPT);
    },

    async 'acquire settles at its deadline even with an attempt unanswered'(t) {
      const a = await t.open();
      const name = t.name();
      a.seam.hang('attempt');
      const ended = await outcome(within('it ends', a.acquire(name, { wait: SHORT_WAIT })));
      expect(ended).toMatchObject({
        status: 'rejected',
        reason: { code: 'BACKEND_UNAVAILABLE', lockName: name },
      });
      expect((ended as { reason: unknown }).reason).toBeInstanceOf(BackendError);
    },

    async 'a grant that lands after the caller gave up is released at once'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const gate = a.seam.gate('attempt', 'after');
      const given = outcome(a.acquire(name, { wait: SHORT_WAIT, ttl: t.physics.longTtl() }));
      await within('it is granted at the server', gate.arrived);
      expect(await given).toMatchObject({ status: 'rejected' });
      expect(await b.tryAcquire(name)).toBeNull();
      gate.open();
      expect((await within('it is given back', b.acquire(name))).isHeld()).toBe(true);
    },

    async 'a request that arrives after the caller gave up leaves nothing'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const gate = a.seam.gate('attempt', 'before');
      const leaving = new AbortController();
      const given = outcome(a.acquire(name, { signal: leaving.signal, ttl: t.physics.longTtl() }));
      await within('it is sent', gate.arrived);
      leaving.abort();
      expect(await given).toMatchObject({ status: 'rejected' });
      gate.open();
      expect((await within('it is given back', b.acquire(name))).isHeld()).toBe(true);
    },

    async "an abort rejects with the signal's own reason, whatever it is"(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      await a.acquire(name, { ttl: t.physics.longTtl() });
      const reasons = [new Error('enough'), 'a word', 42, { any: 'thing' }, undefined];
      const ended = reasons.map(async (reason, index) => {
        const leaving = new AbortController();
        const waited = outcome(b.acquire(name, { signal: leaving.signal }));
        await b.event('waiting', name, index + 1);
        leaving.abort(reason);
        const end = await within('it ends', waited);
        return end.status === 'rejected' && end.reason === leaving.signal.reason;
      });
      expect(await Promise.all(ended)).toEqual(reasons.map(() => true));
      await t.queueShrinks(name);
    },

    async 'a signal that was aborted before sends nothing'(t) {
      const a = await t.open();
      const reason = new Error('never mind');
      const signal = AbortSignal.abort(reason);
      const lock = a.lock(t.name());
      await expect(lock.acquire({ signal })).rejects.toBe(reason);
      await expect(lock.tryAcquire({ signal })).rejects.toBe(reason);
      await expect(lock.run(() => 'never', { signal })).rejects.toBe(reason);
      expect(a.seam.count('attempt')).toBe(0);
    },

    async 'aborting after the grant changes nothing'(t) {
      const a = await t.open();
      const leaving = new AbortController();
      const hold = await a.acquire(t.name(), { signal: leaving.signal });
      leaving.abort();
      await elapse(20);
      expect([hold.isHeld(), hold.signal.aborted, await hold.verify()]).toEqual([true, false, true]);
    },

    async 'one signal may govern many acquisitions: it has one listener, and none when they are over'(t) {
      const [a, b] = await t.pair();
      const names = Array.from({ length: 15 }, () => t.name());
      await Promise.all(names.map((name) => a.acquire(name, { ttl: t.physics.longTtl() })));
      const leaving = new AbortController();
      const { signal } = leaving;
      const waits = names.map((name) => outcome(b.acquire(name, { signal })));
      await Promise.all(names.map((name) => b.event('waiting', name)));
      expect(getEventListeners(signal, 'abort')).toHaveLength(1);
      leaving.abort();
      expect((await Promise.all(waits)).map(({ status }) => status)).toEqual(names.map(() => 'rejected'));
      expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    },

    async 'a hundred acquisitions on one signal, or on one name, draw no warning of a leak'(t) {
      const [a, b] = await t.pair();
      const warnings: string[] = [];
      const listen = (warning: Error): void => void warnings.push(`${warning.name}: ${warning.message}`);
      process.on('warning', listen);
      t.atEnd(() => process.off('warning', listen));
      const name = t.name();
      await a.acquire(name, { ttl: t.physics.longTtl() });
      const leaving = new AbortController();
      const { signal } = leaving;
      const waits = Array.from({ length: 100 }, () => outcome(b.acquire(name, { signal })));
      await b.event('waiting', name, 100, 3 * PROMPT);
      leaving.abort();
      await Promise.all(waits);
      await t.queueShrinks(name);
      // Node tells of a warning in a later tick.
      await elapse(1);
      expect(warnings.filter((warning) => warning.startsWith('MaxListeners'))).toEqual([]);
    },

    async 'an acquisition that succeeded leaves no listener on its signal'(t) {
      const a = await t.open();
      const { signal } = new AbortController();
      const hold = await a.acquire(t.name(), { signal });
      expect(getEventListeners(signal, 'abort')).toHaveLength(0);
      await hold.release();
    },

    async 'zk-timeout-node-left: a waiter that timed out or was aborted leaves no entry'(t) {
      const [a, b, c] = await t.trio();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.longTtl() });
      const late = outcome(b.acquire(name, { wait: SHORT_WAIT }));
      const leaving = new AbortController();
      const aborted = outcome(b.acquire(name, { signal: leaving.signal }));
      await b.event('waiting', name, 2);
      leaving.abort();
      await Promise.all([late, aborted]);
      await t.queueShrinks(name);
      await hold.release();
      expect((await within('it can be had', c.acquire(name))).isHeld()).toBe(true);
      expect((await t.inspect(name)).waiters).toEqual([]);
    },

    async 'mem-timedout-waiters: many waiters that time out leave nothing'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.longTtl() });
      const waits = Array.from({ length: 100 }, (_, index) => outcome(b.acquire(name, { wait: 1 + index })));
      const ended = await within('all end', Promise.all(waits), 3 * PROMPT);
      expect(ended.map(({ status }) => status)).toEqual(waits.map(() => 'rejected'));
      await t.queueShrinks(name);
      await hold.release();
      expect((await within('it can be had', b.acquire(name))).isHeld()).toBe(true);
    },

    async 'zk-nonblocking-cleanup: a try that was refused leaves no entry'(t) {
      const [a, b, c] = await t.trio();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.longTtl() });
      expect(await b.tryAcquire(name)).toBeNull();
      expect((await t.inspect(name)).waiters).toEqual([]);
      await hold.release();
      expect((await t.inspect(name)).held).toBe(false);
      expect((await within('it can be had', c.acquire(name))).isHeld()).toBe(true);
    },

    async 'zk-watch-gap: a release between the refusal and the wait is not missed'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.longTtl() });
      const gate = b.seam.gate('attempt', 'after');
      const waiting = b.acquire(name, { ttl: t.physics.longTtl() });
      await within('it has been refused at the server', gate.arrived);
      await hold.release();
      gate.open();
      expect((await within('it is granted all the same', waiting)).isHeld()).toBe(true);
    },

    async 'subscribe-after-unlock: a release just before the wait begins is not missed'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.longTtl() });
      const gate = b.seam.gate('awaitTurn', 'before');
      const waiting = b.acquire(name, { ttl: t.physics.longTtl() });
      await within('it is about to wait', gate.arrived);
      await hold.release();
      gate.open();
      expect((await within('it is granted all the same', waiting)).isHeld()).toBe(true);
    },

    async 'timer-32bit-spin: ttl and wait of 40 days neither spin nor end'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const warnings: string[] = [];
      const listen = (warning: Error): void => void warnings.push(warning.name);
      process.on('warning', listen);
      t.atEnd(() => process.off('warning', listen));
      const days = t.physics.effective(40 * 24 * 3_600_000);
      const hold = await a.acquire(name, { ttl: days, maxHold: '300d' });
      const leaving = new AbortController();
      const { signal } = leaving;
      const waits = [
        outcome(b.acquire(name, { wait: '40d', signal })),
        outcome(b.acquire(name, { wait: Infinity, signal })),
      ];
      await b.event('waiting', name, 2);
      const attempts = b.seam.count('attempt');
      await elapse(1000);
      expect(warnings.filter((warning) => warning === 'TimeoutOverflowWarning')).toEqual([]);
      expect(b.seen('acquired', name)).toEqual([]);
      expect([hold.isHeld(), hold.ttl]).toEqual([true, days]);
      // A session has its own, shorter pace.
      expect(a.seam.count('renew')).toBeLessThan(t.physics.capabilities.expiry === 'session' ? 20 : 1);
      expect(b.seam.count('attempt') - attempts).toBeLessThan(200);
      leaving.abort();
      await Promise.all(waits);
    },

    async 'handoff-delay-short-jobs: short jobs follow one another without pauses'(t) {
      const instances = await t.trio();
      const name = t.name();
      const jobs = Array.from({ length: 12 }, (_, index) =>
        instances[index % 3]?.lock(name).run(() => index),
      );
      await within('all jobs are done', Promise.all(jobs), 2 * PROMPT);
    },

    async 'unavailableAfter ends an infinite wait for a backend that does not answer'(t) {
      const a = await t.open({ unavailableAfter: 300 });
      a.seam.refuse('attempt');
      const ended = await outcome(within('it ends', a.acquire(t.name()), 2 * PROMPT));
      expect(ended).toMatchObject({ status: 'rejected', reason: { code: 'BACKEND_UNAVAILABLE' } });
      expect(a.seam.count('attempt')).toBeGreaterThan(1);
    },

    async 'waiting in run() for its own name without reentrant warns once'(t) {
      const a = await t.open();
      const name = t.name('deadlock');
      const warned = defer<Error>();
      const warnings: string[] = [];
      const listen = (warning: Error): void => {
        if (!warning.message.includes(JSON.stringify(name))) return;
        warnings.push(warning.message);
        warned.resolve(warning);
      };
      process.on('warning', listen);
      t.atEnd(() => process.off('warning', listen));
      const leaving = new AbortController();
      const { signal } = leaving;
      await a.lock(name).run(async () => {
        const inner = [outcome(a.acquire(name, { signal })), outcome(a.acquire(name, { signal }))];
        await within('it warns', warned.promise);
        await a.event('waiting', name, 2);
        leaving.abort();
        expect((await Promise.all(inner)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
      });
      expect(warnings).toHaveLength(1);
    },
  },

  withProcesses: {
    async 'pending-acquire-exits-process: a pending acquisition keeps the process alive until it settles'(t) {
      const child = await t.child();
      const name = t.name();
      const ttl = t.physics.longTtl();
      await child.acquire(name, { ttl });
      const { exit, output } = await within(
        'the process ends',
        child.acquireAlone(name, { wait: SHORT_WAIT, ttl }),
        2 * PROMPT,
      );
      expect({ exit, output }).toEqual({ exit: { code: 0, signal: null }, output: 'failed LOCK_TIMEOUT\n' });
      await t.observer.locks.forceRelease(name);
    },

    async 'timer-keeps-process: a held lock, its watchdog and idle connections let the process end'(t) {
      const child = await t.child();
      const name = t.name();
      const hold = await child.acquire(name, { ttl: t.physics.shortTtl() });
      expect(await within('the process ends', child.leave(), 2 * PROMPT)).toEqual({ code: 0, signal: null });
      const a = await t.open();
      await within('the lock is free', a.acquire(name), t.physics.freedAfterDeath(hold.ttl));
    },

    async 'timeout-timer-left: a deadline that was not needed does not keep the process'(t) {
      const child = await t.child();
      const hold = await child.acquire(t.name(), { wait: 60_000 });
      expect(await child.release(hold.owner)).toBe(true);
      expect(await within('the process ends', child.leave(), 2 * PROMPT)).toEqual({ code: 0, signal: null });
    },

    async 'a release in one process wakes a waiter in another'(t) {
      const a = await t.open();
      const party = await t.party();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.longTtl() });
      const waiting = party.acquire(name, { ttl: t.physics.longTtl() });
      await party.waiting(name);
      await hold.release();
      const theirs = await within('the other is granted', waiting);
      expect(theirs.fencingToken).toBeGreaterThan(hold.fencingToken);
      const back = a.acquire(name, { ttl: t.physics.longTtl() });
      await a.event('waiting', name);
      expect(await theirs.release()).toBe(true);
      expect((await within('this one is granted', back)).isHeld()).toBe(true);
    },
  },
};
