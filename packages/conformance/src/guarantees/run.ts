import { LockLostError } from '@holdfast/core';
import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';
import { lossOf } from '../harness/party.js';
import { IMPATIENT, outcome, PROMPT, SHORT_WAIT, within } from '../harness/time.js';

/** `run` holds the lock for the work, and tells the truth about how it ended. */
export const run: Guarantee = {
  name: 'run',
  cases: {
    async 'run() gives the value of the work, holds the lock meanwhile, and releases it'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const value = await a.lock(name).run(async (hold) => {
        expect(hold.isHeld()).toBe(true);
        expect(await b.tryAcquire(name)).toBeNull();
        return 'v';
      });
      expect(value).toBe('v');
      expect((await t.inspect(name)).held).toBe(false);
    },

    async 'run() takes work that is not asynchronous'(t) {
      const a = await t.open();
      expect(await a.lock(t.name()).run(({ fencingToken }) => typeof fencingToken)).toBe('bigint');
    },

    async "run() rejects with the work's own error, and releases"(t) {
      const a = await t.open();
      const name = t.name();
      const error = new Error('E1');
      await expect(
        a.lock(name).run(() => {
          throw error;
        }),
      ).rejects.toBe(error);
      await expect(a.lock(name).run(() => Promise.reject(error))).rejects.toBe(error);
      expect((await t.inspect(name)).held).toBe(false);
    },

    async "error-masked-by-release: the work's error wins over a failing release"(t) {
      const a = await t.open(IMPATIENT);
      const name = t.name();
      const error = new Error('E1');
      a.seam.refuse('release');
      const ended = await outcome(
        within(
          'it ends',
          a.lock(name).run(() => Promise.reject(error)),
        ),
      );
      expect(ended).toMatchObject({ status: 'rejected', reason: error });
      a.seam.heal();
      await a.event('error', name);
    },

    async 'run() rejects with LockLostError when the lock was lost while the work ran, even though it returned'(
      t,
    ) {
      const a = await t.open();
      const name = t.name();
      const ended = a.lock(name, { ttl: t.physics.shortTtl() }).run(async (hold) => {
        await t.observer.locks.forceRelease(name);
        await within('the loss is told', lossOf(hold), hold.ttl + PROMPT);
        return 'done';
      });
      await expect(ended).rejects.toBeInstanceOf(LockLostError);
    },

    async 'release-rejection-crashes: run() rejects with LockLostError when the lock had gone at release'(t) {
      const a = await t.open();
      const name = t.name();
      a.seam.deafen();
      const ended = a.lock(name, { ttl: t.physics.longTtl() }).run(async () => {
        await t.observer.locks.forceRelease(name);
        return 'v';
      });
      await expect(ended).rejects.toMatchObject({ code: 'LOCK_LOST', lockName: name });
    },

    async "run() rejects with the work's own error when the lock was lost too"(t) {
      const a = await t.open();
      const name = t.name();
      const error = new Error('E1');
      const ended = a.lock(name, { ttl: t.physics.shortTtl() }).run(async (hold) => {
        await t.observer.locks.forceRelease(name);
        await within('the loss is told', lossOf(hold), hold.ttl + PROMPT);
        throw error;
      });
      await expect(ended).rejects.toBe(error);
    },

    async 'run() gives the value when the outcome of the release stayed unknown, and tells it as an event'(
      t,
    ) {
      const a = await t.open(IMPATIENT);
      const name = t.name();
      a.seam.refuse('release');
      expect(await a.lock(name, { ttl: t.physics.longTtl() }).run(() => 'v')).toBe('v');
      a.seam.heal();
      expect((await a.event('error', name)).error).toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
    },

    async 'run() leaves a hold that the work released itself'(t) {
      const a = await t.open();
      const name = t.name();
      expect(await a.lock(name).run((hold) => hold.release())).toBe(true);
      expect(a.seen('lost', name)).toEqual([]);
    },

    async 'run() fails as acquire does when the lock cannot be had'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      await a.acquire(name, { ttl: t.physics.longTtl() });
      let ran = false;
      const work = (): void => {
        ran = true;
      };
      await expect(b.lock(name).run(work, { wait: SHORT_WAIT })).rejects.toMatchObject({
        code: 'LOCK_TIMEOUT',
      });
      expect(ran).toBe(false);
    },

    async 'tryRun() runs the work or says that it did not'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const outer = await a.lock(name).tryRun(async () => {
        const inner = await b.lock(name).tryRun(() => 'inner');
        expect(inner).toEqual({ acquired: false });
        return 'outer';
      });
      expect(outer).toEqual({ acquired: true, value: 'outer' });
      expect(await b.lock(name).tryRun(() => 'later')).toEqual({ acquired: true, value: 'later' });
    },

    async 'the signal tells the work of a loss'(t) {
      const a = await t.open();
      const name = t.name();
      const ended = a.lock(name, { ttl: t.physics.shortTtl() }).run(async ({ signal, ttl }) => {
        a.seam.refuse('renew');
        const aborted = new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
        });
        await within('the signal aborts', aborted, ttl + PROMPT);
      });
      await expect(ended).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    },
  },
};
