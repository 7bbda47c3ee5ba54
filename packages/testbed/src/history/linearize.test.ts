import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type FencedOperation, linearize } from './linearize.js';

const ENOUGH = 1_000_000;

const operations = fc.array(
  fc
    .record({
      token: fc.bigInt({ min: 1n, max: 4n }),
      from: fc.integer({ min: 0, max: 20 }),
      length: fc.integer({ min: 1, max: 8 }),
      outcome: fc.constantFrom('accepted', 'accepted', 'refused', 'unknown'),
    })
    .map(
      ({ token, from, length, outcome }): FencedOperation => ({
        token,
        from,
        until: outcome === 'unknown' ? Infinity : from + length,
        outcome,
      }),
    ),
  { maxLength: 7 },
);

/** Tries every order of every choice of the unknown ones. */
function hasOrder(open: readonly FencedOperation[], newest: bigint): boolean {
  if (open.every(({ outcome }) => outcome === 'unknown')) return true;
  const deadline = Math.min(...open.map(({ until }) => until));
  return open.some((operation, index) => {
    const { token, from, outcome } = operation;
    if (from > deadline) return false;
    const isTaken = token >= newest;
    if (outcome === (isTaken ? 'refused' : 'accepted')) return false;
    return hasOrder([...open.slice(0, index), ...open.slice(index + 1)], isTaken ? token : newest);
  });
}

test('finds an order exactly where trying every order finds one', () => {
  fc.assert(
    fc.property(operations, (list) => {
      const expected = hasOrder(list, -1n) ? 'pass' : 'fail';
      expect(linearize(list, ENOUGH).verdict).toBe(expected);
    }),
    { numRuns: 5_000 },
  );
});

test('both outcomes occur often enough in these runs to mean something', () => {
  const verdicts = fc.sample(operations, 1_000).map((list) => linearize(list, ENOUGH).verdict);
  expect(verdicts.filter((verdict) => verdict === 'pass').length).toBeGreaterThan(100);
  expect(verdicts.filter((verdict) => verdict === 'fail').length).toBeGreaterThan(100);
});
