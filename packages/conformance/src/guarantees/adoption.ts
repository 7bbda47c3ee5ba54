import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';
import type { Case } from '../harness/case.js';
import { lossOf } from '../harness/party.js';
import { outcome, PROMPT, within } from '../harness/time.js';

/**
 * A hold can be handed on as a string, and is continued by one adopter. A backend whose locks are tied to a session
 * declares that they are not transferable: then both ends must say so, and the hold must stay as it was.
 */
export const adoption: Guarantee = {
  name: 'adoption',
  cases: {
    'a serialized hold is continued by its adopter, with the same token and a new owner': declared(
      async (t) => {
        const [a, b, c] = await t.trio();
        const hold = await a.acquire(t.name(), { ttl: t.physics.longTtl(), metadata: 'm' });
        const adopted = await b.locks.adopt(hold.serialize());
        expect(adopted.fencingToken).toBe(hold.fencingToken);
        expect(adopted.owner).not.toBe(hold.owner);
        expect([adopted.name, adopted.ttl]).toEqual([hold.name, hold.ttl]);
        expect([adopted.isHeld(), await adopted.verify()]).toEqual([true, true]);
        expect(await t.inspect(hold.name)).toMatchObject({
          owner: adopted.owner,
          fencingToken: hold.fencingToken,
          metadata: 'm',
        });
        expect(await c.tryAcquire(hold.name)).toBeNull();
        expect(await adopted.release()).toBe(true);
        expect((await c.acquire(hold.name)).fencingToken).toBeGreaterThan(hold.fencingToken);
      },
    ),

    'serialize() ends the hold here, without a loss': declared(async (t) => {
      const [a, b] = await t.pair();
      const hold = await a.acquire(t.name(), { ttl: t.physics.longTtl() });
      const serialized = hold.serialize();
      expect([hold.isHeld(), hold.remaining(), hold.signal.aborted]).toEqual([false, 0, false]);
      expect(await hold.verify()).toBe(false);
      await expect(hold.extend()).rejects.toMatchObject({ code: 'LOCK_LOST' });
      expect(await hold.release()).toBe(false);
      const adopted = await b.locks.adopt(serialized);
      expect([await adopted.verify(), hold.signal.aborted]).toEqual([true, false]);
      expect(a.seen('lost', hold.name)).toEqual([]);
    }),

    'after an adoption the old owner is no longer valid': declared(async (t) => {
      const [a, b] = await t.pair();
      const hold = await a.acquire(t.name(), { ttl: t.physics.longTtl() });
      const grants: unknown[] = [];
      const renewed = a.seam.intercept('renew', async (pass, args) => {
        grants.push(...(args[0] as unknown[]));
        return pass();
      });
      const adopted = await b.locks.adopt(hold.serialize());
      await within('the old instance has let go', a.locks.close(), 3 * PROMPT);
      renewed();
      expect([adopted.isHeld(), await adopted.verify()]).toEqual([true, true]);
      expect((await t.inspect(hold.name)).owner).toBe(adopted.owner);
      expect(grants.length).toBeLessThanOrEqual(1);
    }),

    'of two adopters one gets the hold and the other LockLostError': declared(async (t) => {
      const [a, b, c] = await t.trio();
      const hold = await a.acquire(t.name(), { ttl: t.physics.longTtl() });
      const serialized = hold.serialize();
      const ended = await Promise.all([b, c, b, c].map(({ locks }) => outcome(locks.adopt(serialized))));
      const got = ended.filter(({ status }) => status === 'fulfilled');
      const refused = ended.filter(({ status }) => status === 'rejected');
      expect(got).toHaveLength(1);
      expect(refused).toMatchObject(
        Array.from({ length: 3 }, () => ({ reason: { code: 'LOCK_LOST', lockName: hold.name } })),
      );
    }),

    'what has gone cannot be adopted: released, forced, or taken by another': declared(async (t) => {
      const [a, b] = await t.pair();
      const [free, taken] = [t.name('free'), t.name('taken')];
      const serialized = await Promise.all(
        [free, taken].map(async (name) => (await a.acquire(name, { ttl: t.physics.longTtl() })).serialize()),
      );
      await t.observer.locks.forceRelease(free);
      await t.observer.locks.forceRelease(taken);
      const theirs = await b.acquire(taken, { ttl: t.physics.longTtl() });
      for (const text of serialized) {
        await expect(b.locks.adopt(text)).rejects.toMatchObject({ code: 'LOCK_LOST' });
      }
      expect((await t.inspect(free)).held).toBe(false);
      expect(await theirs.verify()).toBe(true);
    }),

    'a hold that is not adopted within its ttl is free then': declared(async (t) => {
      const [a, b] = await t.pair();
      const hold = await a.acquire(t.name(), { ttl: t.physics.shortTtl() });
      const serialized = hold.serialize();
      const next = await within('it is free', b.acquire(hold.name), t.physics.freedAfterDeath(hold.ttl));
      expect(next.fencingToken).toBeGreaterThan(hold.fencingToken);
      await expect(a.locks.adopt(serialized)).rejects.toMatchObject({ code: 'LOCK_LOST' });
    }),

    'an adopted hold is renewed, and its ttl is the one that it had': declared(async (t) => {
      const [a, b] = await t.pair();
      const hold = await a.acquire(t.name(), { ttl: t.physics.liveTtl() });
      const adopted = await b.locks.adopt(hold.serialize());
      expect(adopted.ttl).toBe(hold.ttl);
      await b.event('renewed', hold.name, 5, 3 * hold.ttl + PROMPT);
      expect([adopted.isHeld(), await adopted.verify()]).toEqual([true, true]);
    }),

    'renew: false, maxHold and minHold travel along': declared(async (t) => {
      const [a, b] = await t.pair();
      const ttl = t.physics.liveTtl();
      const still = await a.acquire(t.name(), { ttl, renew: false });
      const limited = await a.acquire(t.name(), { ttl, maxHold: 1.5 * t.physics.effective(ttl) });
      const tail = await a.acquire(t.name(), { ttl: t.physics.longTtl(), minHold: '1h' });
      const [s, l, m] = await Promise.all(
        [still, limited, tail].map((hold) => b.locks.adopt(hold.serialize())),
      );
      const ends = [s, l].map((hold) => (hold === undefined ? Promise.resolve('none') : lossOf(hold)));
      const reasons = await within('both end', Promise.all(ends), 2 * t.physics.effective(ttl) + PROMPT);
      expect(reasons).toEqual(['expired', 'max-hold']);
      expect(await m?.release()).toBe(true);
      expect((await t.inspect(tail.name)).held).toBe(true);
      expect(await t.observer.locks.forceRelease(tail.name)).toBe(true);
    }),

    'close() never frees a serialized hold': declared(async (t) => {
      const [a, b] = await t.pair();
      const hold = await a.acquire(t.name(), { ttl: t.physics.longTtl() });
      const serialized = hold.serialize();
      await a.locks.close();
      expect(await b.tryAcquire(hold.name)).toBeNull();
      expect((await b.locks.adopt(serialized)).fencingToken).toBe(hold.fencingToken);
    }),

    'run() skips the release of a hold that was serialized inside': declared(async (t) => {
      const [a, b] = await t.pair();
      const name = t.name();
      const serialized = await a.lock(name, { ttl: t.physics.longTtl() }).run((hold) => hold.serialize());
      expect(await b.tryAcquire(name)).toBeNull();
      expect((await b.locks.adopt(serialized)).isHeld()).toBe(true);
    }),

    'an adoption whose answer was lost is asked for again': declared(async (t) => {
      const [a, b] = await t.pair();
      const hold = await a.acquire(t.name(), { ttl: t.physics.longTtl() });
      const serialized = hold.serialize();
      b.seam.dropAnswers('adopt', 1);
      const adopted = await b.locks.adopt(serialized);
      expect([adopted.fencingToken, adopted.isHeld(), await adopted.verify()]).toEqual([
        hold.fencingToken,
        true,
        true,
      ]);
    }),

    'waiters stay in their queue while the hold changes hands': declared(async (t) => {
      const [a, b, c] = await t.trio();
      const hold = await a.acquire(t.name(), { ttl: t.physics.longTtl() });
      const waiting = c.acquire(hold.name, { ttl: t.physics.longTtl() });
      await c.event('waiting', hold.name);
      const adopted = await b.locks.adopt(hold.serialize());
      expect(c.seen('acquired', hold.name)).toEqual([]);
      await adopted.release();
      expect((await within('the waiter is granted', waiting)).fencingToken).toBeGreaterThan(
        hold.fencingToken,
      );
    }),

    async 'a string that is malformed, or of another backend or prefix, is InvalidArgumentError'(t) {
      const a = await t.open();
      const stranger = await t.stranger();
      const foreign = await stranger.acquire(t.name());
      const texts: unknown[] = [
        ...['', 'x', '{}', 'null', 'AAAA', Buffer.from('{"v":1}').toString('base64url')],
        ...[undefined, null, 42, {}],
      ];
      const transferable = t.physics.capabilities.transferable;
      // Where nothing can be serialized there is no string of another prefix either.
      texts.push(transferable ? foreign.serialize() : 'nothing');
      for (const text of texts) {
        await expect(a.locks.adopt(text as string), String(text)).rejects.toMatchObject({
          code: 'INVALID_ARGUMENT',
          argument: 'serialized',
        });
      }
      expect(a.seam.count('adopt')).toBe(0);
      await stranger.locks.forceRelease(foreign.name);
    },
  },

  withProcesses: {
    'a hold is handed to another process and back': declared(async (t) => {
      const a = await t.open();
      const child = await t.child();
      const hold = await a.acquire(t.name(), { ttl: t.physics.longTtl() });
      const serialized = hold.serialize();
      // A process that does not meet this one has nothing to adopt.
      const crosses = t.physics.capabilities.crossProcess;
      const there = await outcome(child.adopt(serialized));
      expect(there.status).toBe(crosses ? 'fulfilled' : 'rejected');
      const back = crosses ? await child.serialize(told(there).owner) : serialized;
      const again = await a.locks.adopt(back);
      expect([again.fencingToken, again.isHeld(), await again.verify()]).toEqual([
        hold.fencingToken,
        true,
        true,
      ]);
    }),
  },
};

/** Plays the story where holds are transferable, and the refusal where the backend declares that they are not. */
function declared(story: (t: Case) => Promise<void>): (t: Case) => Promise<void> {
  return (t) => (t.physics.capabilities.transferable ? story(t) : refusal(t));
}

async function refusal(t: Case): Promise<void> {
  const a = await t.open();
  const hold = await a.acquire(t.name(), { ttl: t.physics.longTtl() });
  expect(() => hold.serialize()).toThrow(
    expect.objectContaining({ code: 'UNSUPPORTED', lockName: hold.name }),
  );
  expect([hold.isHeld(), await hold.verify()]).toEqual([true, true]);
  const grant = {
    claim: { name: hold.name, owner: hold.owner, ttl: hold.ttl, queue: false, renew: true },
    fencingToken: hold.fencingToken,
    ttl: hold.ttl,
  };
  await expect(a.seam.backend.adopt(grant, 'somebody else')).rejects.toMatchObject({ code: 'UNSUPPORTED' });
  expect(await hold.verify()).toBe(true);
  expect(await hold.release()).toBe(true);
}

function told(outcome: { readonly status: string; readonly value?: { readonly owner: string } }): {
  readonly owner: string;
} {
  if (outcome.value === undefined) throw new Error(`the other process could not adopt: ${outcome.status}`);
  return outcome.value;
}
