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

it('a hand-over counts from when the last sign of life was sent, whatever the server’s clock says', () => {
  const { candidate, pass } = setUp();
  candidate.seen(1000, 900_000);
  pass(1500);
  candidate.handed({ token: 7n, sign: 900_000 });
  expect(candidate.takeHandOver()).toEqual({ token: 7n, from: 1000 });
});

it('it is taken once', () => {
  const { candidate } = setUp();
  candidate.seen(1000, 900_000);
  candidate.handed({ token: 7n, sign: 900_000 });
  expect(candidate.takeHandOver()?.token).toBe(7n);
  expect(candidate.takeHandOver()).toBeUndefined();
});

it('a message of an earlier place in the queue, late, is not relied on: the server is asked', () => {
  const { candidate, pass } = setUp();
  candidate.seen(1000, 900_000);
  pass(7000);
  // It has lost its place, and the lock that it was handed; it has joined again.
  candidate.seen(8000, 907_000);
  candidate.handed({ token: 7n, sign: 900_000 });
  expect(candidate.takeHandOver()).toBeUndefined();
});

it('a message that was long under way is not relied on', () => {
  const { candidate, pass } = setUp();
  candidate.seen(1000, 900_000);
  pass(4000);
  candidate.handed({ token: 7n, sign: 900_000 });
  expect(candidate.takeHandOver()).toBeUndefined();
});

it('nor one that comes before any answer', () => {
  const { candidate } = setUp();
  candidate.handed({ token: 7n, sign: 900_000 });
  expect(candidate.takeHandOver()).toBeUndefined();
});

it('but one that overtakes the answer to the sign of life that it names is good once that has come', () => {
  const { candidate, pass } = setUp();
  candidate.handed({ token: 7n, sign: 900_000 });
  pass(3);
  candidate.seen(1000, 900_000);
  expect(candidate.takeHandOver()).toEqual({ token: 7n, from: 1000 });
});
