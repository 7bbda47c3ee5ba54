import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';
import { lossOf } from '../harness/party.js';
import { PROMPT, within } from '../harness/time.js';

/** `forceRelease` breaks one grant, and nothing else. */
export const force: Guarantee = {
  name: 'force-release',
  cases: {
    async 'the name is free at once, the old token is stale, the old handle hears of it'(t) {
      const [a, b] = await t.pair();
      const hold = await a.acquire(t.name(), { ttl: t.physics.liveTtl() });
      expect(await t.observer.locks.forceRelease(hold.name)).toBe(true);
      const next = await b.tryAcquire(hold.name, { ttl: t.physics.longTtl() });
      expect(next?.fencingToken).toBeGreaterThan(hold.fencingToken);
      const reason = await within('the loss is told', lossOf(hold), hold.ttl + PROMPT);
      expect(reason).toMatch(/^(forced|superseded|session)$/);
      expect([hold.isHeld(), next?.isHeld()]).toEqual([false, true]);
    },

    async 'forcing a free name is false'(t) {
      const name = t.name();
      expect(await t.observer.locks.forceRelease(name)).toBe(false);
      const a = await t.open();
      const hold = await a.acquire(name);
      await hold.release();
      expect(await t.observer.locks.forceRelease(name)).toBe(false);
      expect((await t.inspect(name)).held).toBe(false);
    },

    async 'with an expected token only that grant is broken'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const first = await a.acquire(name, { ttl: t.physics.longTtl() });
      const stale = first.fencingToken;
      await first.release();
      const second = await b.acquire(name, { ttl: t.physics.longTtl() });
      const { locks } = t.observer;
      expect(await locks.forceRelease(name, { fencingToken: stale })).toBe(false);
      expect(await locks.forceRelease(name, { fencingToken: second.fencingToken + 1n })).toBe(false);
      expect([second.isHeld(), await second.verify()]).toEqual([true, true]);
      expect(await locks.forceRelease(name, { fencingToken: second.fencingToken })).toBe(true);
      expect((await t.inspect(name)).held).toBe(false);
    },

    async 'a token that no hold can have is refused without an error'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name(), { ttl: t.physics.longTtl() });
      for (const fencingToken of [-1n, 0n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n, 10n ** 40n]) {
        expect(await t.observer.locks.forceRelease(hold.name, { fencingToken })).toBe(false);
      }
      expect(await hold.verify()).toBe(true);
    },

    async 'the queue stays, and its head is granted'(t) {
      const [a, b, c] = await t.trio();
      const name = t.name();
      const order: string[] = [];
      const hold = await a.acquire(name, { ttl: t.physics.longTtl() });
      const first = b.lock(name).run(() => {
        order.push('first');
      });
      await b.event('waiting', name);
      const second = c.lock(name).run(() => {
        order.push('second');
      });
      await c.event('waiting', name);
      expect(await t.observer.locks.forceRelease(name)).toBe(true);
      await within('both are served', Promise.all([first, second]));
      expect(t.physics.served(order)).toEqual(t.physics.served(['first', 'second']));
      expect(await hold.release()).toBe(false);
    },

    async 'it breaks nothing but its name'(t) {
      const a = await t.open();
      const names = ['k', 'K', 'k ', 'k/a', 'k:queue', '{k}'];
      const holds = await Promise.all(names.map((name) => a.acquire(name, { ttl: t.physics.longTtl() })));
      expect(await t.observer.locks.forceRelease('k')).toBe(true);
      expect(await Promise.all(holds.map((hold) => hold.verify()))).toEqual(
        names.map((name) => name !== 'k'),
      );
    },

    async 'a bad expectation is InvalidArgumentError'(t) {
      const a = await t.open();
      const bad = { fencingToken: 5 } as unknown as { fencingToken: bigint };
      await expect(a.locks.forceRelease(t.name(), bad)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      expect(a.seam.calls).toEqual([]);
    },
  },
};
