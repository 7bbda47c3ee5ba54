import type { Claim } from '@holdfast/core';
import { expect, it } from 'vitest';
import type { Outlook, Place } from './store.js';
import { REFRESH } from './store.js';
import { TestClock } from './test-clock.js';
import { Waitlist } from './waitlist.js';

function scene(options: { pushed?: boolean; outlook?: (place: Place) => Outlook } = {}) {
  const clock = new TestClock();
  const asked: string[] = [];
  const refreshed: string[][] = [];
  const gone = new Set<string>();
  const store = {
    peek: async (places: readonly Place[]) => {
      asked.push(...places.map(({ name, ticket }) => `${name}#${ticket}`));
      return places.map(options.outlook ?? (() => ({ turn: false, ahead: 0, expiresIn: 60_000 })));
    },
    refresh: async (claims: readonly Claim[]) => {
      refreshed.push(claims.map(({ owner }) => owner));
      return new Set(claims.map(({ owner }) => owner).filter((owner) => !gone.has(owner)));
    },
  };
  const log: string[] = [];
  const list = new Waitlist(store, clock, { shortest: 2, longest: 100 }, () => options.pushed === true);
  const stops = new Map<string, AbortController>();
  const wait = (owner: string, ticket: number, name = 'job') => {
    const claim: Claim = { name, owner, ttl: 1000, queue: true, renew: true };
    list.expect(claim);
    const stop = new AbortController();
    stops.set(owner, stop);
    void list.wait(claim, { ticket, position: ticket, retryAfter: 60_000 }, stop.signal).then(
      () => log.push(`${owner} woken`),
      (error: Error) => log.push(`${owner}: ${error.message}`),
    );
    return claim;
  };
  return { clock, asked, refreshed, gone, store, log, list, wait, stops };
}

it('a wake-up that comes between the attempt and the wait is not lost', async () => {
  const { list, log } = scene();
  const claim: Claim = { name: 'job', owner: 'A', ttl: 1000, queue: true, renew: true };
  list.expect(claim);
  list.wake('A');
  await list.wait(claim, { ticket: 1 }, new AbortController().signal);
  log.push('woken at once');
  expect(log).toEqual(['woken at once']);
});

it('a wake-up that led to an attempt does not lead to another', async () => {
  const { list, wait, log } = scene();
  list.expect(wait('A', 1));
  list.wake('A');
  await Promise.resolve();
  await Promise.resolve();
  expect(log).toEqual(['A woken']);
  wait('A', 1);
  await Promise.resolve();
  expect(log).toEqual(['A woken']);
});

it('the foremost alone asks, often at first and ever less while nothing moves', async () => {
  const { clock, asked, wait } = scene();
  wait('A', 1);
  wait('B', 2);
  wait('C', 3);
  await clock.advance(100);
  const early = asked.length;
  expect(early).toBeGreaterThan(5);
  expect(new Set(asked)).toEqual(new Set(['job#1']));
  await clock.advance(10_000);
  asked.length = 0;
  await clock.advance(1000);
  expect(asked.length).toBeLessThan(15);
  expect(asked.length).toBeGreaterThan(8);
});

it('who stands far behind asks more seldom', async () => {
  const counts = [0, 9].map(async (ahead) => {
    const { clock, asked, wait } = scene({ outlook: () => ({ turn: false, ahead, expiresIn: 60_000 }) });
    wait('A', ahead + 1);
    await clock.advance(5000);
    return asked.length;
  });
  const [near = 0, far = 0] = await Promise.all(counts);
  expect(far).toBeLessThan(near / 4);
});

it('with messages, only what could be missed is asked for', async () => {
  const { clock, asked, wait, list, log } = scene({ pushed: true });
  wait('A', 1);
  await clock.advance(5000);
  expect(asked.length).toBeLessThan(8);
  list.wake('A');
  await clock.advance(0);
  await Promise.resolve();
  expect(log).toEqual(['A woken']);
});

it('the end of the hold is asked for when it comes', async () => {
  let left = 300;
  const { clock, wait, log } = scene({
    pushed: true,
    outlook: () => ({ turn: left <= 0, ahead: 0, expiresIn: Math.max(0, left) }),
  });
  wait('A', 1);
  await clock.advance(1100);
  left = 0;
  await clock.advance(400);
  expect(log).toEqual(['A woken']);
});

it('places are kept alive together, and who lost one tries again', async () => {
  const { clock, refreshed, gone, wait, log } = scene();
  for (const [index, owner] of ['A', 'B', 'C'].entries()) wait(owner, index + 1);
  gone.add('B');
  await clock.advance(REFRESH + 1);
  expect(refreshed).toEqual([['A', 'B', 'C']]);
  expect(log).toEqual(['B woken']);
});

it('a place that cannot be kept is told to whoever waits', async () => {
  const { clock, store, wait, log } = scene({ pushed: true });
  store.refresh = async () => {
    throw new Error('no answer');
  };
  wait('A', 1);
  await clock.advance(REFRESH + 1);
  expect(log).toEqual(['A: no answer']);
});

it('an abort ends the wait and leaves no timer', async () => {
  const { clock, list, wait, stops, log } = scene();
  const claim = wait('A', 1);
  stops.get('A')?.abort();
  await clock.advance(0);
  await Promise.resolve();
  expect(log).toEqual(['A woken']);
  list.forget(claim);
  list.close();
  expect(clock.timers).toBe(0);
});

it('the next takes over asking when the foremost has gone', async () => {
  const { clock, asked, list, wait } = scene();
  const first = wait('A', 1);
  wait('B', 2);
  list.forget(first);
  await clock.advance(50);
  expect(new Set(asked)).toEqual(new Set(['job#2']));
});
