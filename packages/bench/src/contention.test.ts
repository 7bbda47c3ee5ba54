import { expect, it } from 'vitest';
import { underContention } from './contention.js';
import type { ContendedHold } from './scenarios.js';

const found = (...processes: ContendedHold[][]) =>
  Object.fromEntries(
    underContention(
      processes.map((holds) => ({
        kind: 'contended' as const,
        holds,
        grantsOfWaiter: [holds.length],
        errors: 0,
      })),
    ).map(([scenario, , value]) => [scenario, value]),
  );

it('waiters that take turns, within a process or between two, hand the lock over each time', () => {
  const mine: ContendedHold[] = [
    [0, 10, 0],
    [12, 20, 1],
    [500, 510, 0],
  ];
  const theirs: ContendedHold[] = [
    [24, 490, 0],
    [1000, 1001, 0],
  ];
  expect(found(mine, theirs)).toMatchObject({
    'contended grants': 5,
    'contended hand-over': 7,
    'contended grants to another': 4,
    'contended hand-over to another': 7,
    'contended spread': 1.5,
  });
});

it('a waiter that takes the lock back hands it to nobody', () => {
  const greedy: ContendedHold[] = [
    [0, 1, 3],
    [2, 3, 3],
    [4, 5, 3],
    [6, 900, 3],
  ];
  expect(found(greedy, [[1000, 1001, 3]])).toMatchObject({
    'contended grants': 5,
    'contended hand-over': 1,
    'contended grants to another': 1,
    'contended hand-over to another': 100,
  });
});
