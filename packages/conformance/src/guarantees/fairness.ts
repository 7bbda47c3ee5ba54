import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';
import type { Instance } from '../harness/instance.js';
import { outcome, PROMPT, SHORT_WAIT, within } from '../harness/time.js';

/** Waiters are served in order, nobody overtakes a live one, and dead ones delay the queue by a bounded time. */
export const fairness: Guarantee = {
  name: 'fairness',
  cases: {
    async 'waiters are served in the order in which they came'(t) {
      const instances = await t.trio();
      const name = t.name();
      const holder = await t.observer.acquire(name, { ttl: t.physics.longTtl() });
      const order: string[] = [];
      const came: string[] = [];
      const waits: Promise<void>[] = [];
      for (let index = 0; index < 9; index++) {
        const instance = instances[index % 3] as Instance;
        came.push(`waiter ${index}`);
        waits.push(
          instance.lock(name).run(() => {
            order.push(`waiter ${index}`);
          }),
        );
        await instance.event('waiting', name, Math.floor(index / 3) + 1);
      }
      await holder.release();
      await within('everybody is served', Promise.all(waits), 5 * PROMPT);
      expect(t.physics.served(order)).toEqual(t.physics.served(came));
    },

    async 'a newcomer does not overtake a waiter whose turn has come'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const holder = await t.observer.acquire(name, { ttl: t.physics.longTtl() });
      const waiting = a.acquire(name, { ttl: t.physics.longTtl() });
      await a.event('waiting', name);
      const gate = a.seam.gate('attempt', 'before');
      await holder.release();
      const overtaking = await b.tryAcquire(name, { ttl: t.physics.longTtl() });
      const overtook = overtaking !== null;
      expect({ overtook }).toEqual({ overtook: t.physics.capabilities.fairness === 'none' });
      await overtaking?.release();
      gate.open();
      expect((await within('the waiter is granted', waiting)).isHeld()).toBe(true);
    },

    async 'a newcomer who waits joins behind a waiter whose turn has come'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const order: string[] = [];
      const holder = await t.observer.acquire(name, { ttl: t.physics.longTtl() });
      const first = a.lock(name).run(() => {
        order.push('waiter');
      });
      await a.event('waiting', name);
      const gate = a.seam.gate('attempt', 'before');
      await holder.release();
      const second = b.lock(name).run(() => {
        order.push('newcomer');
      });
      await within('the newcomer waits, or is served', Promise.race([b.event('waiting', name), second]));
      gate.open();
      await within('both are served', Promise.all([first, second]));
      expect(t.physics.served(order)).toEqual(t.physics.served(['waiter', 'newcomer']));
    },

    async 'a waiter that gives up makes room: the next is served, with no delay'(t) {
      const [a, b, c] = await t.trio();
      const name = t.name();
      const holder = await t.observer.acquire(name, { ttl: t.physics.longTtl() });
      const leaving = new AbortController();
      const gone = outcome(a.acquire(name, { signal: leaving.signal }));
      await a.event('waiting', name);
      const late = outcome(b.acquire(name, { wait: SHORT_WAIT }));
      await b.event('waiting', name);
      const next = c.acquire(name, { ttl: t.physics.longTtl() });
      await c.event('waiting', name);
      leaving.abort(new Error('changed my mind'));
      expect((await gone).status).toBe('rejected');
      expect((await late).status).toBe('rejected');
      await holder.release();
      expect((await within('the next is granted', next)).isHeld()).toBe(true);
    },

    async 'a waiter that gives up when its turn has come passes it on'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const holder = await t.observer.acquire(name, { ttl: t.physics.longTtl() });
      const leaving = new AbortController();
      const gone = outcome(a.acquire(name, { signal: leaving.signal, ttl: t.physics.longTtl() }));
      await a.event('waiting', name);
      const next = b.acquire(name, { ttl: t.physics.longTtl() });
      await b.event('waiting', name);
      const gate = a.seam.gate('attempt', 'after');
      await holder.release();
      await within('the first has been granted at the server', gate.arrived);
      leaving.abort();
      expect((await gone).status).toBe('rejected');
      gate.open();
      expect((await within('the next is granted', next)).isHeld()).toBe(true);
    },

    async 'mem-islocked-lag: waiters that timed out do not keep a released lock taken'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.longTtl() });
      await Promise.all([
        outcome(b.acquire(name, { wait: SHORT_WAIT })),
        outcome(b.acquire(name, { wait: SHORT_WAIT })),
      ]);
      await t.queueShrinks(name);
      await hold.release();
      expect((await within('it can be had', a.acquire(name))).isHeld()).toBe(true);
      expect((await t.inspect(name)).waiters).toEqual([]);
    },

    async 'a hand-over wakes the next waiter alone'(t) {
      const waiters = 16;
      const a = await t.open();
      const name = t.name();
      const holder = await t.observer.acquire(name, { ttl: t.physics.longTtl() });
      const served = Array.from({ length: waiters }, () =>
        a.lock(name, { ttl: t.physics.longTtl() }).run(() => undefined),
      );
      await a.event('waiting', name, waiters);
      const before = a.seam.count('attempt');
      await holder.release();
      await within('everybody is served', Promise.all(served), 5 * PROMPT);
      const attempts = a.seam.count('attempt') - before;
      // A herd asks waiters × waiters / 2 times. Polling backends ask now and then besides.
      expect(attempts).toBeGreaterThanOrEqual(waiters);
      expect(attempts).toBeLessThan((waiters * waiters) / 3);
    },

    async 'nobody starves: of contenders that come back at once, each is served its share'(t) {
      const instances = await t.trio();
      const name = t.name();
      const rounds = 6;
      const served = [0, 0, 0];
      await within(
        'everybody is served',
        Promise.all(
          instances.map(async (instance, index) => {
            for (let round = 0; round < rounds; round++) {
              await instance.lock(name).run(() => {
                served[index] = (served[index] ?? 0) + 1;
              });
            }
          }),
        ),
        8 * PROMPT,
      );
      expect(served).toEqual([rounds, rounds, rounds]);
    },
  },

  withProcesses: {
    async 'waiters in several processes are served in the order in which they came'(t) {
      const name = t.name();
      const holder = await t.observer.acquire(name, { ttl: t.physics.longTtl() });
      const parties = await Promise.all([t.party(), t.party(), t.party()]);
      const order: string[] = [];
      const waits: Promise<void>[] = [];
      for (const [index, party] of parties.entries()) {
        const served = party.acquire(name, { ttl: t.physics.longTtl() }).then(async (hold) => {
          order.push(`party ${index}`);
          await hold.release();
        });
        waits.push(served);
        await party.waiting(name);
      }
      await holder.release();
      await within('everybody is served', Promise.all(waits), 3 * PROMPT);
      expect(t.physics.served(order)).toEqual(t.physics.served(['party 0', 'party 1', 'party 2']));
    },

    async 'fair-timeout-drift: waiters that died together delay the queue by one grace'(t) {
      const a = await t.open();
      const name = t.name();
      const holder = await t.observer.acquire(name, { ttl: t.physics.longTtl() });
      const dying = await t.party();
      const dead = [1, 2, 3].map(() => outcome(dying.acquire(name, { ttl: t.physics.longTtl() })));
      await dying.waiting(name, dead.length);
      const next = a.acquire(name, { ttl: t.physics.shortTtl() });
      await a.event('waiting', name);
      await dying.die();
      await holder.release();
      const hold = await within('the living waiter is granted', next, t.physics.pastDeadWaiters());
      expect(hold.isHeld()).toBe(true);
    },

    async 'a waiter that stood still longer than the grace joins again at the end'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const holder = await t.observer.acquire(name, { ttl: t.physics.longTtl() });
      const sleeper = await t.party();
      const order: string[] = [];
      const slept = sleeper.acquire(name, { ttl: t.physics.longTtl() }).then(async (hold) => {
        order.push('sleeper');
        await hold.release();
      });
      await sleeper.waiting(name);
      const second = a.acquire(name, { ttl: t.physics.longTtl() });
      await a.event('waiting', name);
      sleeper.pause();
      await holder.release();
      const overtook = await within('the next is granted', second, t.physics.pastDeadWaiters());
      const third = b.lock(name).run(() => {
        order.push('third');
      });
      await b.event('waiting', name);
      sleeper.resume();
      await overtook.release();
      await within('both are served', Promise.all([third, slept]), 2 * PROMPT + t.physics.capabilities.grace);
      expect(t.physics.served(order)).toEqual(t.physics.served(['third', 'sleeper']));
    },
  },
};
