import type { Claim, Contended, Grant, LockBackend } from '@holdfast/core';
import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';
import type { Case } from '../harness/case.js';
import { elapse, PROMPT, within } from '../harness/time.js';

/**
 * What core relies on, asked of the backend directly, without the engine in between: a fault here shows nearer to its
 * cause than in the other guarantees.
 */
export const seam: Guarantee = {
  name: 'the seam',
  cases: {
    async 'attempt is idempotent by owner: the same grant, the same token'(t) {
      const { backend } = await bare(t);
      const claim = claimOf(t);
      const first = granted(await backend.attempt(claim));
      const second = granted(await backend.attempt(claim));
      expect(second.fencingToken).toBe(first.fencingToken);
      expect(second.claim.owner).toBe(claim.owner);
      expect(await backend.release(claim)).toBe(true);
      expect(await backend.release(claim)).toBe(false);
    },

    async 'asking again never shortens'(t) {
      const { backend } = await bare(t);
      const claim = claimOf(t, { ttl: t.physics.longTtl() });
      const grant = granted(await backend.attempt(claim));
      const least = t.physics.atLeastLeft(t.physics.longTtl());
      await backend.attempt({ ...claim, ttl: t.physics.shortTtl() });
      expect((await backend.inspect(claim.name)).expiresIn ?? 0).toBeGreaterThan(least);
      await backend.renew([{ ...grant, ttl: t.physics.shortTtl() }]);
      expect((await backend.inspect(claim.name)).expiresIn ?? 0).toBeGreaterThan(least);
      await backend.extend(grant, t.physics.shortTtl());
      expect((await backend.inspect(claim.name)).expiresIn ?? 0).toBeGreaterThan(least);
      await elapse(1.2 * t.physics.shortTtl());
      expect((await backend.inspect(claim.name)).owner).toBe(claim.owner);
      await backend.release(claim);
    },

    async 'asking again lengthens'(t) {
      const { backend } = await bare(t);
      const claim = claimOf(t, { ttl: t.physics.shortTtl() });
      const grant = granted(await backend.attempt(claim));
      await backend.attempt({ ...claim, ttl: t.physics.longTtl() });
      await elapse(1.2 * t.physics.shortTtl());
      const state = await backend.inspect(claim.name);
      expect([state.owner, state.fencingToken]).toEqual([claim.owner, grant.fencingToken]);
      await backend.release(claim);
    },

    async 'a refused attempt without queue leaves nothing; with queue it is refused in its place'(t) {
      const { backend } = await bare(t);
      const holder = claimOf(t);
      await backend.attempt(holder);
      const trying = claimOf(t, { name: holder.name });
      expect(refused(await backend.attempt(trying)).holder?.owner).toBe(holder.owner);
      expect((await backend.inspect(holder.name)).waiters).toEqual([]);
      const queued = claimOf(t, { name: holder.name, queue: true });
      await backend.attempt(queued);
      await backend.attempt(queued);
      const { waiters } = await backend.inspect(holder.name);
      expect(waiters.map(({ owner }) => owner)).toEqual(t.physics.queued([queued.owner]));
      expect(await backend.release(queued)).toBe(false);
      expect((await backend.inspect(holder.name)).waiters).toEqual([]);
      expect((await backend.inspect(holder.name)).owner).toBe(holder.owner);
      await backend.release(holder);
    },

    async 'a waiter that asks again keeps its place'(t) {
      const { backend } = await bare(t);
      const holder = claimOf(t);
      await backend.attempt(holder);
      const queue = Array.from({ length: 3 }, () => claimOf(t, { name: holder.name, queue: true }));
      for (const claim of queue) await backend.attempt(claim);
      for (const claim of queue) await backend.attempt(claim);
      const [first, second] = queue;
      if (first !== undefined) await backend.attempt(first);
      if (second !== undefined) await backend.attempt({ ...second, ttl: t.physics.shortTtl() });
      const { waiters } = await backend.inspect(holder.name);
      expect(waiters.map(({ owner }) => owner)).toEqual(t.physics.queued(queue.map(({ owner }) => owner)));
      for (const claim of [...queue, holder]) await backend.release(claim);
    },

    async 'release is by owner alone'(t) {
      const { backend } = await bare(t);
      const holder = claimOf(t);
      await backend.attempt(holder);
      for (const owner of [
        `${holder.owner}x`,
        holder.owner.slice(0, -1),
        holder.owner.toUpperCase(),
        'someone',
      ]) {
        expect(await backend.release({ ...holder, owner })).toBe(false);
      }
      expect((await backend.inspect(holder.name)).owner).toBe(holder.owner);
      expect(await backend.release(holder)).toBe(true);
    },

    async 'renew answers for each grant in its place, checks owner and token, and makes nothing'(t) {
      const { backend } = await bare(t);
      const claims = Array.from({ length: 5 }, () => claimOf(t));
      const grants: Grant[] = [];
      for (const claim of claims) grants.push(granted(await backend.attempt(claim)));
      const [one, two, three, four, five] = grants as [Grant, Grant, Grant, Grant, Grant];
      await backend.release(two.claim);
      const stolen = { ...four, claim: { ...four.claim, owner: 'someone:else:0' } };
      const stale = { ...five, fencingToken: five.fencingToken - 1n };
      const renewals = await backend.renew([one, two, three, stolen, stale]);
      expect(renewals.map(({ renewed }) => renewed)).toEqual([true, false, true, false, false]);
      expect((await backend.inspect(two.claim.name)).held).toBe(false);
      expect((await backend.inspect(four.claim.name)).owner).toBe(four.claim.owner);
      for (const claim of claims) await backend.release(claim);
    },

    async 'renew of nothing is nothing'(t) {
      const { backend } = await bare(t);
      expect(await backend.renew([])).toEqual([]);
    },

    async 'awaitTurn resolves when its signal aborts, and at once when it had'(t) {
      const { backend } = await bare(t);
      const holder = claimOf(t);
      await backend.attempt(holder);
      const queued = claimOf(t, { name: holder.name, queue: true });
      const contended = refused(await backend.attempt(queued));
      const leaving = new AbortController();
      const turn = backend.awaitTurn(queued, contended, leaving.signal);
      leaving.abort();
      await within('it resolves', turn);
      await within('it resolves', backend.awaitTurn(queued, contended, leaving.signal));
      await backend.release(queued);
      await backend.release(holder);
    },

    async 'awaitTurn resolves when the turn has come'(t) {
      const { backend } = await bare(t);
      const holder = claimOf(t);
      await backend.attempt(holder);
      const queued = claimOf(t, { name: holder.name, queue: true });
      const contended = refused(await backend.attempt(queued));
      const turn = backend.awaitTurn(queued, contended, new AbortController().signal);
      await backend.release(holder);
      await within('it resolves', turn, t.physics.capabilities.grace + PROMPT);
      await backend.release(queued);
    },

    async 'a late attempt of a claim that was released leaves nothing'(t) {
      const { backend } = await bare(t);
      const claim = claimOf(t, { queue: true });
      // Both under way at once, in this order: the release must not be overtaken by what it cleans up.
      const [, released] = await Promise.all([backend.attempt(claim), backend.release(claim)]);
      expect(typeof released).toBe('boolean');
      expect(await backend.inspect(claim.name)).toMatchObject({ held: false, waiters: [] });
    },

    async 'close() is idempotent'(t) {
      const { backend } = await bare(t);
      await backend.close();
      await backend.close();
    },
  },
};

let owners = 0;

/** A backend that was opened without an engine; the case closes it. */
async function bare(t: Case): Promise<{ readonly backend: LockBackend }> {
  const { backend } = (await t.open()).seam;
  return { backend };
}

function claimOf(t: Case, claim: Partial<Claim> = {}): Claim {
  owners++;
  const owner = `conformance:${process.pid}:${t.prefix}-${owners}`;
  return { name: t.name(), owner, ttl: t.physics.longTtl(), queue: false, renew: true, ...claim };
}

function granted(answer: Grant | Contended): Grant {
  if (!('fencingToken' in answer))
    throw new Error(`expected a grant, was refused: ${JSON.stringify(answer)}`);
  return answer;
}

function refused(answer: Grant | Contended): Contended {
  if ('fencingToken' in answer) throw new Error('expected a refusal, was granted');
  return answer;
}
