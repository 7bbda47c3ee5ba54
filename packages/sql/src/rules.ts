/**
 * The rules of a store as stories, each told on a real database. They throw where the rule is broken, so that the
 * same story serves to show that a broken statement is found out.
 */
import { expect } from 'vitest';
import { keyOf } from './key.js';
import type { LockStore } from './store.js';
import { always, claimOf, isGrant, withRows } from './test-kit.js';

/** What a story has to tell with. */
export interface Stage {
  readonly url: string;
  readonly prefix: string;
  /** Two instances in the same tenant. */
  readonly a: LockStore;
  readonly b: LockStore;
}

export type Story = (stage: Stage) => Promise<void>;

const give = { keepFor: 0, late: false };

async function grant(store: LockStore, owner: string, more: object = {}) {
  const answer = await store.attempt(claimOf(owner, more), always);
  if (!isGrant(answer)) throw new Error(`${owner} was refused: ${JSON.stringify(answer)}`);
  return answer;
}

async function refuse(store: LockStore, owner: string, more: object = {}) {
  const answer = await store.attempt(claimOf(owner, more), always);
  if (isGrant(answer)) throw new Error(`${owner} was granted the lock`);
  return answer;
}

/** Changes the row of `job` by hand, as time or an accident would. */
async function tamper({ url, prefix }: Stage, table: 'locks' | 'waiters', changes: object): Promise<void> {
  await withRows(url, async (rows) => rows.update(`holdfast_${table}`, keyOf(prefix, 'job'), changes));
}

export const RULES: Readonly<Record<string, Story>> = {
  async 'mine comes first: asking again gives the same token, whoever waits'({ a, b }) {
    const { fencingToken } = await grant(a, 'A');
    await refuse(b, 'B');
    expect((await grant(a, 'A')).fencingToken).toBe(fencingToken);
  },

  async 'asking again never shortens'({ a }) {
    await grant(a, 'A', { ttl: 60_000 });
    await grant(a, 'A', { ttl: 5000 });
    expect((await a.inspect('job')).expiresIn).toBeGreaterThan(30_000);
  },

  async 'a renewal never shortens'({ a }) {
    const hold = await grant(a, 'A', { ttl: 60_000 });
    expect(await a.renew([{ ...hold, ttl: 5000 }])).toEqual([{ renewed: true, ttl: 5000 }]);
    expect((await a.inspect('job')).expiresIn).toBeGreaterThan(30_000);
  },

  async 'a renewal prolongs many holds, each for its own ttl, and tells which are lost'({ a }) {
    const names = ['one', 'two', 'three', 'four'];
    const holds = await Promise.all(names.map((name) => grant(a, `A-${name}`, { name })));
    await a.release(claimOf('A-three', { name: 'three' }), give);
    const renewals = await a.renew(
      holds.map((hold, index) => ({ ...hold, ttl: 60_000 * (1 + (index % 2)) })),
    );
    expect(renewals.map(({ renewed }) => renewed)).toEqual([true, true, false, true]);
    expect((await a.inspect('one')).expiresIn).toBeGreaterThan(50_000);
    expect((await a.inspect('one')).expiresIn).toBeLessThanOrEqual(60_000);
    expect((await a.inspect('two')).expiresIn).toBeGreaterThan(100_000);
  },

  async 'a renewal checks the owner and the token, and creates nothing'(stage) {
    const { a } = stage;
    const hold = await grant(a, 'A');
    const strangers = [
      { ...hold, claim: claimOf('B') },
      { ...hold, fencingToken: hold.fencingToken + 1n },
      { ...hold, claim: claimOf('A', { name: 'other' }) },
    ];
    const lost = { renewed: false, reason: 'superseded' };
    expect(await a.renew(strangers)).toEqual([lost, lost, lost]);
    expect((await a.inspect('other')).held).toBe(false);
  },

  async 'nobody overtakes a live waiter, not even without queueing'({ a, b }) {
    await grant(a, 'A');
    await refuse(b, 'B');
    await a.release(claimOf('A'), give);
    await refuse(a, 'C');
    await refuse(a, 'T', { queue: false });
    await grant(b, 'B');
    expect((await a.inspect('job')).waiters.map(({ owner }) => owner)).toEqual(['C']);
  },

  async 'who has had the lock before has no other rights for that'({ a, b }) {
    const first = await grant(a, 'A');
    await a.release(claimOf('A'), give);
    const held = await grant(b, 'B');
    expect(held.fencingToken).toBeGreaterThan(first.fencingToken);
    await refuse(a, 'T', { queue: false });
    await refuse(b, 'C');
    await b.release(claimOf('B'), give);
    await refuse(a, 'T', { queue: false });
    await grant(b, 'C');
    await b.release(claimOf('C'), give);
    const again = await grant(a, 'D', { metadata: 'again', ttl: 60_000 });
    expect(again.fencingToken).toBeGreaterThan(held.fencingToken);
    expect((await grant(a, 'D')).fencingToken).toBe(again.fencingToken);
    const state = await b.inspect('job');
    expect(state).toMatchObject({ owner: 'D', metadata: 'again', fencingToken: again.fencingToken });
    expect(state.expiresIn).toBeGreaterThan(30_000);
  },

  async 'who is refused without queueing leaves nothing'({ a, b }) {
    await grant(a, 'A');
    await refuse(b, 'T', { queue: false });
    expect((await a.inspect('job')).waiters).toEqual([]);
  },

  async 'a dead waiter blocks nobody'(stage) {
    const { a, b } = stage;
    await grant(a, 'A');
    await refuse(b, 'B');
    await tamper(stage, 'waiters', stage.url.startsWith('sqlite') ? { expires: 1 } : { alive_until: 1 });
    await a.release(claimOf('A'), give);
    await grant(b, 'C');
  },

  async 'a place that died is joined again at the end'(stage) {
    const { a, b } = stage;
    await grant(a, 'A');
    const before = await refuse(b, 'B');
    await tamper(stage, 'waiters', stage.url.startsWith('sqlite') ? { expires: 1 } : { alive_until: 1 });
    const c = await refuse(a, 'C');
    expect(await b.refresh([claimOf('B')])).toEqual(new Set());
    const again = await refuse(b, 'B');
    expect(again.ticket).toBeGreaterThan(Number(c.ticket));
    expect(again.ticket).not.toBe(before.ticket);
    expect((await a.inspect('job')).waiters.map(({ owner }) => owner)).toEqual(['C', 'B']);
  },

  async 'a refresh keeps a place alive and tells which are gone'({ a, b }) {
    await grant(a, 'A');
    await refuse(b, 'B');
    await refuse(b, 'C');
    await b.release(claimOf('C'), give);
    expect(await b.refresh([claimOf('B'), claimOf('C')])).toEqual(new Set(['B']));
  },

  async 'a release clears the owner: a late renewal does not revive it'({ a }) {
    const hold = await grant(a, 'A');
    expect(await a.release(claimOf('A'), give)).toEqual({ freed: true });
    expect(await a.renew([hold])).toEqual([{ renewed: false, reason: 'superseded' }]);
    expect((await a.inspect('job')).held).toBe(false);
    expect(await a.release(claimOf('A'), give)).toEqual({ freed: false });
  },

  async 'a release frees nobody else'({ a, b }) {
    await grant(a, 'A');
    expect((await b.release(claimOf('B'), give)).freed).toBe(false);
    expect((await a.inspect('job')).owner).toBe('A');
  },

  async 'many releases at once free what is theirs, each knows whether it did, and heads are named'({
    a,
    b,
  }) {
    const names = Array.from({ length: 20 }, (_, index) => `job-${index}`);
    for (const name of names) await grant(a, `A-${name}`, { name });
    await refuse(b, 'B', { name: 'job-7' });
    await a.release(claimOf('A-job-9', { name: 'job-9' }), give);
    await grant(b, 'C', { name: 'job-9' });
    const freed = await Promise.all(names.map((name) => a.release(claimOf(`A-${name}`, { name }), give)));
    expect(freed).toEqual(
      names.map((name) => {
        if (name === 'job-7') return { freed: true, next: 'B' };
        return { freed: name !== 'job-9' };
      }),
    );
    expect((await a.inspect('job-9')).owner).toBe('C');
    expect((await a.inspect('job-3')).held).toBe(false);
    await grant(b, 'D', { name: 'job-3' });
  },

  async 'a release names the head of the queue'({ a, b }) {
    await grant(a, 'A');
    await refuse(b, 'B');
    await refuse(a, 'C');
    expect(await a.release(claimOf('A'), give)).toEqual({ freed: true, next: 'B' });
  },

  async 'a grant removes the place: the next release names the next'({ a, b }) {
    await grant(a, 'A');
    await refuse(b, 'B');
    await refuse(a, 'C');
    await a.release(claimOf('A'), give);
    await grant(b, 'B');
    expect((await a.inspect('job')).waiters.map(({ owner }) => owner)).toEqual(['C']);
    expect(await b.release(claimOf('B'), give)).toEqual({ freed: true, next: 'C' });
  },

  async 'who gives up a turn hands it on'({ a, b }) {
    await grant(a, 'A');
    await refuse(b, 'B');
    await refuse(a, 'C');
    await a.release(claimOf('A'), give);
    expect(await b.release(claimOf('B'), give)).toEqual({ freed: false, next: 'C' });
    await grant(a, 'C');
  },

  async 'who gives up while the lock is held wakes nobody'({ a, b }) {
    await grant(a, 'A');
    await refuse(b, 'B');
    await refuse(a, 'C');
    expect(await b.release(claimOf('B'), give)).toEqual({ freed: false });
  },

  async 'the peek of a waiter tells its turn'({ a, b }) {
    await grant(a, 'A', { ttl: 20_000 });
    const first = await refuse(b, 'B');
    const second = await refuse(b, 'C');
    const places = [first, second].map(({ ticket }) => ({ name: 'job', ticket: Number(ticket) }));
    const held = await b.peek(places);
    expect(held.map(({ turn, ahead }) => [turn, ahead])).toEqual([
      [false, 0],
      [false, 1],
    ]);
    expect(held[0]?.expiresIn).toBeGreaterThan(10_000);
    await a.release(claimOf('A'), give);
    expect((await b.peek(places)).map(({ turn }) => turn)).toEqual([true, false]);
  },

  async 'a tail keeps the name taken, without owner, and can be forced'({ a, b }) {
    const hold = await grant(a, 'A');
    expect(await a.release(claimOf('A'), { keepFor: 60_000, late: false })).toEqual({ freed: true });
    const state = await b.inspect('job');
    expect(state).toMatchObject({ held: true, fencingToken: hold.fencingToken });
    expect(state.owner).toBeUndefined();
    await refuse(b, 'B');
    expect(await a.forceRelease('job', hold.fencingToken)).toEqual({ freed: true, next: 'B' });
    expect((await grant(b, 'B')).fencingToken).toBeGreaterThan(hold.fencingToken);
  },

  async 'force breaks the expected grant alone, and leaves word of it'({ a }) {
    const hold = await grant(a, 'A');
    expect((await a.forceRelease('job', hold.fencingToken - 1n)).freed).toBe(false);
    expect((await a.forceRelease('job', hold.fencingToken)).freed).toBe(true);
    expect(await a.renew([hold])).toEqual([{ renewed: false, reason: 'forced' }]);
    expect((await a.forceRelease('job', undefined)).freed).toBe(false);
  },

  async 'of two who adopt, one does; who did may ask again'({ a, b }) {
    const hold = await grant(a, 'A', { metadata: 'why' });
    const outcomes = await Promise.all([a.adopt(hold, 'B'), b.adopt(hold, 'C')]);
    expect(outcomes.filter(Boolean)).toHaveLength(1);
    const winner = outcomes[0] ? 'B' : 'C';
    expect(await a.adopt(hold, winner)).toBe(true);
    const state = await a.inspect('job');
    expect(state).toMatchObject({ owner: winner, fencingToken: hold.fencingToken, metadata: 'why' });
  },

  async 'tokens rise even where the clock is behind them, all 64 bits of them'(stage) {
    const { a, b } = stage;
    const far = 2n ** 60n + 1n;
    await grant(a, 'A');
    await a.release(claimOf('A'), give);
    await tamper(stage, 'locks', { fence: far.toString() });
    const next = await grant(b, 'B');
    expect(next.fencingToken).toBe(far + 1n);
    expect((await grant(b, 'B')).fencingToken).toBe(far + 1n);
    expect((await a.inspect('job')).fencingToken).toBe(far + 1n);
    expect(await a.renew([next])).toMatchObject([{ renewed: true }]);
    expect(await a.adopt(next, 'C')).toBe(true);
    await a.release(claimOf('C'), give);
    expect((await grant(a, 'D')).fencingToken).toBe(far + 2n);
  },

  async 'a token is the time where the counter was lost'(stage) {
    const { a } = stage;
    const before = await grant(a, 'A');
    await a.release(claimOf('A'), give);
    await withRows(stage.url, (rows) => rows.delete('holdfast_locks', keyOf(stage.prefix, 'job')));
    expect((await grant(a, 'B')).fencingToken).toBeGreaterThan(before.fencingToken);
  },

  async 'a sweep spares what is held, kept, waited for or young, and no token falls by it'(stage) {
    const { a, b } = stage;
    const held = await grant(a, 'A', { name: 'held' });
    await grant(a, 'A-tail', { name: 'tail' });
    await a.release(claimOf('A-tail', { name: 'tail' }), { keepFor: 60_000, late: false });
    await grant(a, 'A-waited', { name: 'waited' });
    await refuse(b, 'B', { name: 'waited' });
    await a.release(claimOf('A-waited', { name: 'waited' }), give);
    const free = await grant(a, 'A-free', { name: 'free' });
    await a.release(claimOf('A-free', { name: 'free' }), give);
    const rows = async (): Promise<string[]> => {
      let names: string[] = [];
      await withRows(stage.url, async (all) => {
        names = await all.names('holdfast_locks', stage.prefix);
      });
      return names.sort();
    };
    await a.sweep(60_000, 500);
    expect(await rows()).toEqual(['free', 'held', 'tail', 'waited']);
    await Promise.all([a.sweep(0, 500), b.sweep(0, 500)]);
    expect(await rows()).toEqual(['held', 'tail', 'waited']);
    expect(await a.renew([held])).toMatchObject([{ renewed: true }]);
    expect((await grant(a, 'C', { name: 'free' })).fencingToken).toBeGreaterThan(free.fencingToken);
    await grant(b, 'B', { name: 'waited' });
  },

  async 'a listing names what is held or waited for, once, by prefix'({ a, b }) {
    await grant(a, 'A1', { name: 'orders/1' });
    await grant(a, 'A2', { name: 'orders/2' });
    await refuse(b, 'B', { name: 'orders/2' });
    await a.release(claimOf('A2', { name: 'orders/2' }), give);
    await grant(a, 'A3', { name: 'other' });
    await grant(a, 'A4', { name: 'orders/free' });
    await a.release(claimOf('A4', { name: 'orders/free' }), give);
    const names: string[] = [];
    for await (const { name } of a.list('orders/')) names.push(name);
    expect(names.sort()).toEqual(['orders/1', 'orders/2']);
  },

  async 'a dead waiter leaves the table with the next sweep'(stage) {
    const { a, b } = stage;
    await grant(a, 'A');
    await refuse(b, 'B');
    await tamper(stage, 'waiters', stage.url.startsWith('sqlite') ? { expires: 1 } : { alive_until: 1 });
    expect(await a.sweep(60_000, 500)).toBeGreaterThanOrEqual(1);
  },
};

/** Where `b` is a client whose clock is an hour ahead. */
export const CLOCK_RULE: Story = async ({ a, b }) => {
  await grant(a, 'A');
  await refuse(b, 'B');
  await a.release(claimOf('A'), give);
  await grant(b, 'B');
  await refuse(a, 'C');
};

/** For stores whose statements go one by one, and may reach the server after their caller has gone, or not at all. */
export const SERVER_RULES: Readonly<Record<string, Story>> = {
  async 'an attempt that arrives after its release finds the claim gone'({ a, b }) {
    await a.release(claimOf('A'), { keepFor: 0, late: true });
    await refuse(a, 'A', { queue: false });
    await refuse(a, 'A');
    expect((await b.inspect('job')).held).toBe(false);
    expect((await b.inspect('job')).waiters).toEqual([]);
    await grant(b, 'B');
  },

  async 'so does one of who has had the lock before'({ a, b }) {
    await grant(a, 'A');
    await a.release(claimOf('A'), give);
    await a.release(claimOf('B'), { keepFor: 0, late: true });
    await refuse(a, 'B', { queue: false });
    expect((await b.inspect('job')).held).toBe(false);
    await grant(b, 'C');
  },

  async 'asking again completes a place that was cut off before the row was marked'(stage) {
    const { a, b } = stage;
    await grant(a, 'A');
    await refuse(b, 'B');
    await tamper(stage, 'locks', { queued: 0 });
    await refuse(b, 'B');
    expect(await a.release(claimOf('A'), give)).toEqual({ freed: true, next: 'B' });
    await refuse(a, 'T', { queue: false });
  },

  async 'nobody overtakes a live waiter whose mark is still under way'(stage) {
    const { a, b } = stage;
    await grant(a, 'A');
    await refuse(b, 'B');
    await tamper(stage, 'locks', { queued: 0 });
    await a.release(claimOf('A'), give);
    await refuse(a, 'T', { queue: false });
    await grant(b, 'B');
  },

  async 'nobody overtakes a live waiter where the row was deleted and made anew'({ url, prefix, a, b }) {
    await grant(a, 'A');
    await refuse(b, 'B');
    await withRows(url, (rows) => rows.delete('holdfast_locks', keyOf(prefix, 'job')));
    await refuse(a, 'T', { queue: false });
    await refuse(a, 'T again', { queue: false });
    await grant(b, 'B');
  },

  async 'a late release of a holder frees the lock, and of a waiter hands its turn on'({ a, b }) {
    await grant(a, 'A');
    await refuse(b, 'B');
    await refuse(b, 'C');
    await b.release(claimOf('B'), { keepFor: 0, late: true });
    expect((await a.inspect('job')).waiters.map(({ owner }) => owner)).toEqual(['C']);
    expect(await a.release(claimOf('A'), { keepFor: 0, late: true })).toEqual({ freed: true, next: 'C' });
  },
};
