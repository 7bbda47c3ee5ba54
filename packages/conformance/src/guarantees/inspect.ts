import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';
import type { Instance } from '../harness/instance.js';
import { SHORT_WAIT } from '../harness/time.js';

const MINUTES = 10 * 60_000;

/** What is shown is what is so. */
export const inspect: Guarantee = {
  name: 'inspect',
  cases: {
    async 'a free name is shown as free'(t) {
      const name = t.name();
      expect(await t.inspect(name)).toEqual({ name, held: false, waiters: [] });
      expect(await t.list()).toEqual([]);
    },

    async 'a held name is shown with owner, token, times and metadata, to every instance'(t) {
      const a = await t.open();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.longTtl(), metadata: 'invoice run, ünïcödé 🔒' });
      const state = await t.inspect(name);
      const { owner, fencingToken } = hold;
      expect(state).toMatchObject({
        ...{ name, held: true, owner, fencingToken, waiters: [] },
        metadata: 'invoice run, ünïcödé 🔒',
      });
      expect(state.acquiredAt).toBeInstanceOf(Date);
      // By the server's clock, which need not be ours.
      expect(Math.abs(Date.now() - (state.acquiredAt?.getTime() ?? 0))).toBeLessThan(MINUTES);
      expect(state.expiresIn).toBeGreaterThan(0);
      expect(state.expiresIn).toBeLessThanOrEqual(hold.ttl);
    },

    async 'after release it is shown as free'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name(), { metadata: 'gone' });
      await hold.release();
      expect(await t.inspect(hold.name)).toEqual({ name: hold.name, held: false, waiters: [] });
    },

    async 'waiters are shown in their order, from position 1, and told their place'(t) {
      const instances = await t.trio();
      const name = t.name();
      await t.observer.acquire(name, { ttl: t.physics.longTtl() });
      const leaving = new AbortController();
      const { signal } = leaving;
      const waits: Promise<unknown>[] = [];
      const came: string[] = [];
      for (const instance of instances as readonly Instance[]) {
        waits.push(instance.acquire(name, { signal }).catch(() => undefined));
        came.push((await instance.event('waiting', name)).owner ?? 'unknown');
      }
      const { waiters } = await t.inspect(name);
      const shown = waiters.map(({ owner }) => owner);
      expect(t.physics.queued(shown)).toEqual(t.physics.queued(came));
      expect(waiters.map(({ position }) => position)).toEqual(waiters.map((_, index) => index + 1));
      leaving.abort();
      await Promise.all(waits);
      await t.queueShrinks(name);
    },

    async 'list() yields the names held or waited for, each once, in every shard'(t) {
      const [a, b] = await t.pair();
      const names = Array.from({ length: 40 }, (_, index) => t.name(`n${index}`));
      const holds = await Promise.all(names.map((name, index) => (index % 2 ? a : b).acquire(name)));
      expect((await t.list()).map(({ name }) => name).sort()).toEqual([...names].sort());
      expect((await t.list()).every(({ held }) => held)).toBe(true);
      await Promise.all(holds.slice(0, 20).map((hold) => hold.release()));
      expect((await t.list()).map(({ name }) => name).sort()).toEqual(names.slice(20).sort());
    },

    async 'list() by prefix yields the names that start so, byte for byte'(t) {
      const a = await t.open();
      const names = ['job:1', 'job:2', 'Job:3', 'jo', 'job', 'x-job:4', 'job%', 'job_', 'job*', 'jöb'];
      await Promise.all(names.map((name) => a.acquire(name)));
      for (const prefix of ['job', 'job:', 'Job', 'job%', 'job_', 'job*', 'jö', 'nothing', '']) {
        const listed = (await t.list(prefix)).map(({ name }) => name).sort();
        expect(listed, prefix).toEqual(names.filter((name) => name.startsWith(prefix)).sort());
      }
    },

    async 'a list that is left early ends nothing'(t) {
      const a = await t.open();
      await Promise.all(Array.from({ length: 10 }, () => a.acquire(t.name())));
      let seen = 0;
      for await (const _state of a.locks.list()) {
        seen++;
        if (seen === 3) break;
      }
      expect(seen).toBe(3);
      expect(await t.list()).toHaveLength(10);
    },

    async 'a waiter without a holder is listed too'(t) {
      const a = await t.open();
      const name = t.name();
      const holder = await t.observer.acquire(name, { ttl: t.physics.longTtl() });
      const waiting = a.acquire(name, { ttl: t.physics.longTtl() });
      await a.event('waiting', name);
      const gate = a.seam.gate('attempt', 'before');
      await holder.release();
      const listed = await t.list();
      gate.open();
      await waiting;
      expect(listed.map((state) => state.name)).toEqual(
        t.physics.capabilities.fairness === 'fifo' ? [name] : [],
      );
    },

    async 'verify() asks the backend'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name(), { ttl: t.physics.longTtl() });
      expect(await hold.verify()).toBe(true);
      a.seam.deafen();
      await t.observer.locks.forceRelease(hold.name);
      expect(await hold.verify()).toBe(false);
      expect([hold.isHeld(), hold.signal.aborted]).toEqual([false, true]);
    },

    async 'handles and states turn into JSON, tokens as strings'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name(), { metadata: 'm' });
      const { name, owner } = hold;
      const fencingToken = String(hold.fencingToken);
      expect(JSON.parse(JSON.stringify(hold))).toMatchObject({ name, owner, fencingToken, ttl: hold.ttl });
      const state = JSON.parse(JSON.stringify(await t.inspect(name)));
      expect(state).toMatchObject({ name, held: true, owner, fencingToken, metadata: 'm', waiters: [] });
      expect(JSON.parse(JSON.stringify(await t.list()))).toMatchObject([{ name, fencingToken }]);
    },

    async 'an owner is unique for each acquisition'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const owners = new Set<string>();
      for (let round = 0; round < 6; round++) {
        const hold = await (round % 2 ? a : b).acquire(name);
        owners.add(hold.owner);
        await hold.release();
      }
      expect(owners.size).toBe(6);
    },

    async 'metadata is at most 1 KiB of UTF-8'(t) {
      const a = await t.open();
      const name = t.name();
      for (const metadata of ['x'.repeat(1025), 'é'.repeat(513), 'a\u0000', '\ud800', 42, null]) {
        await expect(a.acquire(name, { metadata: metadata as string })).rejects.toMatchObject({
          code: 'INVALID_ARGUMENT',
          argument: 'metadata',
        });
      }
      expect(a.seam.calls).toEqual([]);
      for (const metadata of ['x'.repeat(1024), 'é'.repeat(512), ' ', "'; --", '\u0001\n\t']) {
        const hold = await a.acquire(name, { metadata });
        expect((await t.inspect(name)).metadata).toBe(metadata);
        await hold.release();
      }
    },

    async 'mem-islocked-lag: what is shown in the moment after a release is what is so'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.longTtl() });
      await Promise.allSettled([
        b.acquire(name, { wait: SHORT_WAIT }),
        b.acquire(name, { wait: SHORT_WAIT }),
      ]);
      await t.queueShrinks(name);
      await hold.release();
      expect((await t.inspect(name)).held).toBe(false);
    },
  },
};
