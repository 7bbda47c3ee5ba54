import { setImmediate as turn } from 'node:timers/promises';
import type { LockHandle } from '@holdfast/core';
import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';
import { outcome, PROMPT, within } from '../harness/time.js';

/** At most one handle for a name is held at any moment. */
export const exclusion: Guarantee = {
  name: 'exclusion',
  cases: {
    async 'one holder at a time, of many callers in several instances'(t) {
      const instances = await t.trio();
      const name = t.name();
      let inside = 0;
      let most = 0;
      let rounds = 0;
      const caller = async (index: number): Promise<void> => {
        const lock = instances[index % 3]?.lock(name, { ttl: t.physics.longTtl() });
        for (let round = 0; round < 3; round++) {
          await lock?.run(async () => {
            inside++;
            most = Math.max(most, inside);
            await turn();
            inside--;
            rounds++;
          });
        }
      };
      await within(
        'every caller has its turns',
        Promise.all(Array.from({ length: 12 }, (_, index) => caller(index))),
        5 * PROMPT,
      );
      expect({ most, rounds }).toEqual({ most: 1, rounds: 36 });
    },

    async 'wait-negative-many-holders: a negative wait is refused; of those who wait without limit one holds'(
      t,
    ) {
      const [a, b] = await t.pair();
      const name = t.name();
      const refused = Array.from({ length: 5 }, () => outcome(a.acquire(name, { wait: -1 })));
      expect(await Promise.all(refused)).toMatchObject(
        refused.map(() => ({ status: 'rejected', reason: { code: 'INVALID_ARGUMENT' } })),
      );
      const leaving = new AbortController();
      const { signal } = leaving;
      const waits = [a, b, a, b].map((instance) =>
        outcome(instance.acquire(name, { wait: Infinity, ttl: t.physics.longTtl(), signal })),
      );
      await Promise.all([a.event('waiting', name), b.event('waiting', name)]);
      await within('one is granted', Promise.race(waits));
      expect(a.seen('acquired', name).length + b.seen('acquired', name).length).toBe(1);
      leaving.abort();
      const ended = await Promise.all(waits);
      expect(ended.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    },

    async 'of many who try at once exactly one is granted'(t) {
      const instances = await t.trio();
      const name = t.name();
      const tries = Array.from({ length: 12 }, (_, index) => instances[index % 3]?.tryAcquire(name));
      const holds = (await Promise.all(tries)).filter((hold) => hold !== null);
      expect(holds).toHaveLength(1);
    },

    async 'zk-same-session-double: two locks of one instance exclude each other'(t) {
      const a = await t.open();
      const name = t.name();
      const first = await a.lock(name).acquire({ ttl: t.physics.longTtl() });
      expect(await a.lock(name).tryAcquire()).toBeNull();
      const second = a.lock(name).acquire({ wait: 2 * PROMPT });
      await a.event('waiting', name);
      expect(first.isHeld()).toBe(true);
      await first.release();
      expect((await second).fencingToken).toBeGreaterThan(first.fencingToken);
    },

    async "the holder's own tryAcquire is refused like anybody's"(t) {
      const a = await t.open();
      const name = t.name();
      const hold = await a.acquire(name);
      expect(await a.tryAcquire(name)).toBeNull();
      expect(hold.isHeld()).toBe(true);
    },

    async 'followers-all-at-once: holds that are never released follow one another, never together'(t) {
      const instances = await t.trio();
      const name = t.name();
      const ttl = t.physics.shortTtl();
      const grants: LockHandle[] = [];
      const together: string[] = [];
      await within(
        'all three are granted',
        Promise.all(
          instances.map(async (instance) => {
            const hold = await instance.acquire(name, { ttl, renew: false });
            for (const earlier of grants) {
              if (earlier.isHeld() || !earlier.signal.aborted) together.push(earlier.owner);
            }
            grants.push(hold);
          }),
        ),
        3 * t.physics.freedAfterDeath(ttl),
      );
      expect(together).toEqual([]);
      expect(grants).toHaveLength(3);
    },

    async 'other names do not matter'(t) {
      const [a, b] = await t.pair();
      const names = Array.from({ length: 20 }, () => t.name());
      const holds = await Promise.all(names.map((name, index) => (index % 2 ? a : b).tryAcquire(name)));
      expect(holds.map((hold) => hold?.isHeld())).toEqual(names.map(() => true));
    },

    async 'other prefixes do not matter'(t) {
      const a = await t.open();
      const other = await t.stranger();
      const name = t.name();
      const ours = await a.acquire(name);
      const theirs = await other.tryAcquire(name);
      expect([ours.isHeld(), theirs?.isHeld()]).toEqual([true, true]);
      expect((await other.locks.inspect(name)).owner).toBe(theirs?.owner);
      expect((await t.list()).map((state) => state.owner)).toEqual([ours.owner]);
      await theirs?.release();
      expect(await ours.verify()).toBe(true);
    },

    async 'a free name is granted to a second tenant of the same process after the first has closed'(t) {
      const [a, b] = await t.pair();
      const name = t.name();
      await a.acquire(name);
      await a.locks.close();
      expect(await within('the closed instance has given back', b.acquire(name))).toMatchObject({ name });
    },
  },

  withProcesses: {
    async 'another process meets the same locks, or does not, as declared'(t) {
      const a = await t.open();
      const child = await t.child();
      const name = t.name();
      await a.acquire(name, { ttl: t.physics.longTtl() });
      const theirs = await child.tryAcquire(name, { ttl: t.physics.longTtl() });
      const meets = theirs === null;
      expect({ meets }).toEqual({ meets: t.physics.capabilities.crossProcess });
    },

    async 'one holder at a time, of several processes with this one among them'(t) {
      const a = await t.open();
      const children = await Promise.all([t.child(), t.child()]);
      const name = t.name();
      const inside = t.insidePath();
      // Processes that do not meet exclude each other no more than their declaration says: each has a file of its own.
      const shared = t.physics.capabilities.crossProcess;
      const rounds = 8;
      const ours: bigint[] = [];
      const competing = children.map((child, index) =>
        child.compete(name, rounds, shared ? inside : `${inside}-${index}`, { ttl: t.physics.longTtl() }),
      );
      for (let round = 0; round < rounds; round++) {
        await a.lock(name).run((hold) => {
          ours.push(hold.fencingToken);
        });
      }
      const found = await within('the processes have had their turns', Promise.all(competing), 5 * PROMPT);
      expect(found.map(({ overlaps }) => overlaps)).toEqual([0, 0]);
      const tokens = [...ours, ...found.flatMap((competition) => competition.tokens.map(BigInt))];
      expect(tokens).toHaveLength(3 * rounds);
      expect(new Set(shared ? tokens : ours).size).toBe(shared ? 3 * rounds : rounds);
    },
  },
};
