import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';
import { lossOf } from '../harness/party.js';
import { PROMPT, within } from '../harness/time.js';

/** What happens is told: once, in order, with who, what and when. */
export const events: Guarantee = {
  name: 'events',
  cases: {
    async 'an acquisition that waits tells waiting, acquired, released, in this order'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const first = await a.acquire(name, { ttl: t.physics.longTtl() });
      const waiting = b.acquire(name, { ttl: t.physics.longTtl() });
      await b.event('waiting', name);
      await first.release();
      const second = await waiting;
      await second.release();
      expect(a.told.map(({ event }) => event)).toEqual(['acquired', 'released']);
      expect(b.told.map(({ event }) => event)).toEqual(['waiting', 'acquired', 'released']);
      expect(b.told).toMatchObject([
        { name, owner: second.owner, holder: first.owner },
        { name, owner: second.owner, fencingToken: second.fencingToken },
        { name, owner: second.owner },
      ]);
      const [, acquired, released] = b.told as unknown as [unknown, { waited: number }, { heldFor: number }];
      expect(acquired.waited).toBeGreaterThan(0);
      expect(released.heldFor).toBeGreaterThanOrEqual(0);
      expect(b.told.every(({ at }) => at instanceof Date)).toBe(true);
    },

    async 'the place in the queue is told, as declared'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const hold = await t.observer.acquire(name, { ttl: t.physics.longTtl() });
      const first = a.acquire(name, { ttl: t.physics.longTtl() });
      const one = await a.event('waiting', name);
      const second = b.acquire(name, { ttl: t.physics.longTtl() });
      const two = await b.event('waiting', name);
      const fifo = t.physics.capabilities.fairness === 'fifo';
      expect([one.position, two.position]).toEqual(fifo ? [1, 2] : [undefined, undefined]);
      await hold.release();
      await Promise.all([first, second].map((waited) => waited.then((granted) => granted.release())));
    },

    async 'renewals tell the ttl'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name(), { ttl: t.physics.liveTtl() });
      const renewed = await a.event('renewed', hold.name, 1, hold.ttl + PROMPT);
      expect(renewed).toMatchObject({ name: hold.name, owner: hold.owner, ttl: hold.ttl });
    },

    async 'a loss tells its error, and no release'(t) {
      const a = await t.open();
      const hold = await a.acquire(t.name(), { ttl: t.physics.shortTtl(), renew: false });
      await within('it is lost', lossOf(hold), hold.ttl + PROMPT);
      expect(a.told.map(({ event }) => event)).toEqual(['acquired', 'lost']);
      expect(a.seen('lost', hold.name)).toMatchObject([{ owner: hold.owner, error: hold.signal.reason }]);
    },

    async 'a listener that throws breaks nothing, and the others are told'(t) {
      const a = await t.open();
      const told: string[] = [];
      a.locks.on('acquired', () => {
        throw new Error('a listener of somebody');
      });
      a.locks.on('acquired', ({ name }) => told.push(String(name)));
      const hold = await a.acquire(t.name());
      expect(hold.isHeld()).toBe(true);
      expect(told).toEqual([hold.name]);
    },

    async 'on() returns the function that stops listening'(t) {
      const a = await t.open();
      const told: string[] = [];
      const stop = a.locks.on('acquired', ({ name }) => told.push(String(name)));
      const first = await a.acquire(t.name());
      stop();
      stop();
      await a.acquire(t.name());
      expect(told).toEqual([first.name]);
    },

    async 'a try that was refused tells nothing'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      await a.acquire(name, { ttl: t.physics.longTtl() });
      expect(await b.tryAcquire(name)).toBeNull();
      expect(b.told).toEqual([]);
    },

    async 'the diagnostics channels carry the same payloads'(t) {
      const a = await t.open();
      const name = t.name('channel');
      const carried: string[] = [];
      const listener = (payload: unknown, channel: string | symbol): void => {
        if ((payload as { name?: string }).name === name) carried.push(String(channel));
      };
      const channels = ['waiting', 'acquired', 'renewed', 'lost', 'released', 'error'].map(
        (event) => `holdfast:${event}`,
      );
      for (const channel of channels) subscribe(channel, listener);
      t.atEnd(() => {
        for (const channel of channels) unsubscribe(channel, listener);
      });
      const hold = await a.acquire(name);
      await hold.extend();
      await hold.release();
      expect(carried).toEqual(['holdfast:acquired', 'holdfast:renewed', 'holdfast:released']);
    },
  },
};
