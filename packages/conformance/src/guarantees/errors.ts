import {
  BackendError,
  HoldfastError,
  isHoldfastError,
  LockLostError,
  LockTimeoutError,
} from '@holdfast/core';
import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';
import { eventually, IMPATIENT, outcome, PROMPT, SHORT_WAIT, within } from '../harness/time.js';

/** Contended, unavailable and unknown are three things. */
export const errors: Guarantee = {
  name: 'errors',
  cases: {
    async 'self-block-own-key: an acquisition whose answer was lost finds itself as the owner'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      a.seam.dropAnswers('attempt', 1);
      const hold = await within('it is held', a.acquire(name, { ttl: t.physics.longTtl() }));
      expect(a.seam.count('attempt')).toBe(2);
      expect([hold.isHeld(), await hold.verify()]).toEqual([true, true]);
      expect(await t.inspect(name)).toMatchObject({ owner: hold.owner, fencingToken: hold.fencingToken });
      expect(await b.tryAcquire(name)).toBeNull();
      expect(await hold.release()).toBe(true);
      expect((await t.inspect(name)).held).toBe(false);
    },

    async 'self-block-own-key: a try whose answer was lost is held too'(t) {
      const a = await t.open();
      a.seam.dropAnswers('attempt', 1);
      const hold = await within('it is held', a.tryAcquire(t.name()));
      expect(hold?.isHeld()).toBe(true);
    },

    async 'self-block-own-key: with the deadline past, what may have been taken is cleaned up'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const heal = a.seam.dropAnswers('attempt');
      await expect(a.acquire(name, { wait: SHORT_WAIT, ttl: t.physics.longTtl() })).rejects.toBeInstanceOf(
        BackendError,
      );
      heal();
      expect((await within('it is free', b.acquire(name))).isHeld()).toBe(true);
    },

    async 'error-then-two-holders: a first attempt that failed before it was applied does not count'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const failed = within('an attempt is sent', a.seam.next('attempt'));
      const heal = a.seam.refuse('attempt');
      const waiting = a.acquire(name, { ttl: t.physics.longTtl() });
      await failed;
      const theirs = await b.acquire(name, { ttl: t.physics.longTtl() });
      heal();
      expect((await a.event('waiting', name)).holder).toBe(theirs.owner);
      expect(await theirs.release()).toBe(true);
      expect((await within('it is granted then', waiting)).fencingToken).toBeGreaterThan(theirs.fencingToken);
    },

    async 'error-then-two-holders: a first attempt that failed after it was applied does'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      a.seam.dropAnswers('attempt', 1);
      const ours = a.acquire(name, { ttl: t.physics.longTtl() });
      await eventually('the first attempt has been applied', async () => (await t.inspect(name)).held);
      const theirs = b.acquire(name, { ttl: t.physics.longTtl() });
      const hold = await within('it is held', ours);
      await b.event('waiting', name);
      expect(b.seen('acquired', name)).toEqual([]);
      await hold.release();
      expect((await within('the other is granted', theirs)).fencingToken).toBeGreaterThan(hold.fencingToken);
    },

    async 'a waiter whose answers are lost keeps its place'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const order: string[] = [];
      const holder = await t.observer.acquire(name, { ttl: t.physics.longTtl() });
      a.seam.dropAnswers('attempt', 1);
      const first = a.lock(name).run(() => {
        order.push('first');
      });
      await within('its place is taken', a.event('waiting', name));
      const second = b.lock(name).run(() => {
        order.push('second');
      });
      await b.event('waiting', name);
      await holder.release();
      await within('both are served', Promise.all([first, second]));
      expect(t.physics.served(order)).toEqual(t.physics.served(['first', 'second']));
    },

    async 'a backend that cannot be reached is BackendError with its cause, not contention'(t) {
      const a = await t.open(IMPATIENT);
      const name = t.name();
      a.seam.refuse('attempt', 'inspect', 'forceRelease');
      const calls: Promise<unknown>[] = [
        a.acquire(name, { wait: SHORT_WAIT }),
        a.acquire(name, { wait: 0 }),
        a.tryAcquire(name),
        a.lock(name).tryRun(() => 'never'),
        a.locks.inspect(name),
        a.locks.forceRelease(name),
      ];
      const ended = await Promise.all(calls.map((call) => outcome(within('it ends', call, 2 * PROMPT))));
      for (const end of ended) {
        expect(end).toMatchObject({ status: 'rejected', reason: { code: 'BACKEND_UNAVAILABLE' } });
        expect((end as { reason: unknown }).reason).toBeInstanceOf(BackendError);
      }
    },

    async 'inflight-never-settles: every call settles although the backend is silent'(t) {
      const a = await t.open(IMPATIENT);
      const [held, free] = [t.name(), t.name()];
      const hold = await a.acquire(held, { ttl: t.physics.longTtl() });
      a.seam.hang('attempt', 'renew', 'extend', 'release', 'verify', 'inspect', 'forceRelease');
      const calls: Promise<unknown>[] = [
        a.tryAcquire(free),
        hold.extend(),
        hold.verify(),
        a.locks.inspect(free),
        a.locks.forceRelease(free),
      ];
      const ended = await Promise.all(calls.map((call) => outcome(within('it settles', call))));
      expect(ended).toMatchObject(calls.map(() => ({ reason: { code: 'BACKEND_UNAVAILABLE' } })));
      expect(await outcome(within('it settles', hold.release()))).toMatchObject({
        reason: { code: 'BACKEND_UNAVAILABLE', lockName: held },
      });
    },

    async 'real-cause-hidden: a permanent refusal fails at once, with its cause'(t) {
      const a = await t.open();
      const name = t.name();
      const cause = new Error('NOPERM this user has no permissions');
      a.seam.intercept('attempt', async () => {
        throw new BackendError('BACKEND_REFUSED', 'the server refuses', { cause, lockName: name });
      });
      for (const call of [a.acquire(name), a.acquire(name, { wait: 60_000 }), a.tryAcquire(name)]) {
        await expect(within('it ends', call)).rejects.toMatchObject({ code: 'BACKEND_REFUSED', cause });
      }
      expect(a.seam.count('attempt')).toBe(3);
    },

    async 'a transient refusal is retried until the deadline'(t) {
      const a = await t.open();
      const name = t.name();
      let refusals = 0;
      a.seam.intercept('attempt', async (pass) => {
        refusals++;
        if (refusals < 4) throw new BackendError('BACKEND_REFUSED', 'loading', { transient: true });
        return pass();
      });
      expect((await within('it is held', a.acquire(name))).isHeld()).toBe(true);
      expect(refusals).toBe(4);
    },

    async 'errors carry code, lock name and cause, and are recognised across copies of the library'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      await a.acquire(name, { ttl: t.physics.longTtl() });
      const ended = await outcome(b.acquire(name, { wait: 0 }));
      expect(ended).toMatchObject({ status: 'rejected', reason: { code: 'LOCK_TIMEOUT', lockName: name } });
      const { reason } = ended as { reason: unknown };
      expect(reason).toBeInstanceOf(LockTimeoutError);
      expect(reason).toBeInstanceOf(HoldfastError);
      expect(reason).not.toBeInstanceOf(LockLostError);
      expect([
        isHoldfastError(reason),
        isHoldfastError(reason, 'LOCK_TIMEOUT'),
        isHoldfastError(reason, 'CONFIG'),
      ]).toEqual([true, true, false]);
      expect((reason as Error).message).toContain(JSON.stringify(name));
    },

    async 'options that are none are InvalidArgumentError, and nothing is sent'(t) {
      const a = await t.open();
      const name = t.name();
      const bad: readonly (readonly [string, unknown])[] = [
        ['renew', 'yes'],
        ['reentrant', 1],
        ['signal', 'now'],
        ['signal', {}],
      ];
      for (const [argument, value] of bad) {
        await expect(a.acquire(name, { [argument]: value }), argument).rejects.toMatchObject({
          code: 'INVALID_ARGUMENT',
          argument,
        });
      }
      expect(a.seam.calls).toEqual([]);
    },
  },
};
