import { type Clock, systemClock } from '@holdfast/core';
import { expect, it } from 'vitest';
import { Candidate } from './candidate.js';

function setUp(): { candidate: Candidate; pass(ms: number): void } {
  let now = 1000;
  const clock: Clock = { ...systemClock, now: () => now };
  const claim = { name: 'job', owner: 'o', ttl: 30_000, queue: true, renew: true };
  const pass = (ms: number) => {
    now += ms;
  };
  return { candidate: new Candidate(claim, '+channel', clock), pass };
}

const HANDED = { token: 7n, validFor: 5000 };

it('a hand-over begins by our clock when the server’s has gone on, less the drift', () => {
  const { candidate, pass } = setUp();
  candidate.seen(1000, 900_000);
  pass(2000);
  candidate.handed({ ...HANDED, at: 901_000 });
  expect(candidate.takeHandOver()).toEqual({ token: 7n, from: 1990, validFor: 5000 });
});

it('it is taken once', () => {
  const { candidate } = setUp();
  candidate.seen(1000, 900_000);
  candidate.handed({ ...HANDED, at: 900_000 });
  expect(candidate.takeHandOver()?.token).toBe(7n);
  expect(candidate.takeHandOver()).toBeUndefined();
});

it('it never begins after the message came, whatever the server’s clock did', () => {
  const { candidate, pass } = setUp();
  candidate.seen(1000, 900_000);
  pass(10);
  candidate.handed({ ...HANDED, at: 990_000 });
  expect(candidate.takeHandOver()?.from).toBe(1010);
});

it('a message that was long under way is not relied on: the server is asked', () => {
  const { candidate, pass } = setUp();
  candidate.seen(1000, 900_000);
  pass(4000);
  candidate.handed({ ...HANDED, at: 900_500 });
  expect(candidate.takeHandOver()).toBeUndefined();
});

it('without a moment known by both clocks it is not relied on', () => {
  const { candidate } = setUp();
  candidate.handed({ ...HANDED, at: 900_000 });
  expect(candidate.takeHandOver()).toBeUndefined();
});
