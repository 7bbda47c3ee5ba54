import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';
import { lossOf } from '../harness/party.js';
import { IMPATIENT, outcome, PROMPT, SHORT_WAIT, within } from '../harness/time.js';

/** How long a server and its clients may take to find each other again. */
const RECOVERY = 5 * PROMPT;

/** The server itself goes away and comes back. */
export const outage: Guarantee = {
  name: 'outage',
  cases: {},
  withFaults: {
    async 'without a server an acquisition is BackendError at its deadline, and a hold is lost when its time is up'(
      t,
    ) {
      const a = await t.open(IMPATIENT);
      const hold = await a.acquire(t.name(), { ttl: t.physics.shortTtl() });
      await t.faults.stop();
      const start = outcome(a.acquire(t.name(), { wait: SHORT_WAIT }));
      const tried = outcome(a.tryAcquire(t.name()));
      await within('the loss is told', lossOf(hold), hold.ttl + PROMPT);
      expect(hold.isHeld()).toBe(false);
      expect(await within('acquire ends', start, 2 * PROMPT)).toMatchObject({
        reason: { code: 'BACKEND_UNAVAILABLE' },
      });
      expect(await within('tryAcquire ends', tried, 2 * PROMPT)).toMatchObject({
        reason: { code: 'BACKEND_UNAVAILABLE' },
      });
      await t.faults.start();
      const again = await within(
        'it can be had again',
        a.acquire(hold.name),
        RECOVERY + t.physics.freedAfterDeath(hold.ttl),
      );
      expect(again.fencingToken).toBeGreaterThan(hold.fencingToken);
    },

    async 'a waiter waits through an outage, and is granted after it'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      const hold = await a.acquire(name, { ttl: t.physics.shortTtl() });
      const waiting = b.acquire(name, { ttl: t.physics.longTtl() });
      await b.event('waiting', name);
      await t.faults.stop();
      await within('the loss is told', lossOf(hold), hold.ttl + PROMPT);
      await t.faults.start();
      const next = await within(
        'the waiter is granted',
        waiting,
        RECOVERY + t.physics.freedAfterDeath(hold.ttl),
      );
      expect(next.fencingToken).toBeGreaterThan(hold.fencingToken);
    },

    async 'renew-dead-after-error: after an outage locks are taken, renewed and released as before'(t) {
      const a = await t.open();
      const name = t.name();
      const ttl = t.physics.liveTtl();
      const first = await a.acquire(name, { ttl });
      await t.faults.stop();
      await within('the loss is told', lossOf(first), first.ttl + PROMPT);
      await t.faults.start();
      const second = await within(
        'it can be had again',
        a.acquire(name, { ttl }),
        RECOVERY + t.physics.freedAfterDeath(ttl),
      );
      await a.event('renewed', name, 4, 3 * second.ttl + RECOVERY);
      expect([second.isHeld(), await second.verify(), await second.release()]).toEqual([true, true, true]);
    },
  },
};
