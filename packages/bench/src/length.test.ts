import { expect, it } from 'vitest';
import { lengthFor } from './length.js';
import type { Finding } from './scenarios.js';

const effort = { rounds: 1, ms: 1000, waiters: 50, processes: 5 };

function warmUp(holds: number, every: number): Finding {
  const times = Array.from({ length: holds }, (_, index) => [index * every, index * every, 0] as const);
  return { kind: 'contended', holds: times, grantsOfWaiter: [], errors: 0 };
}

it('waiters whose turns are slow are given more time, so that each has enough turns', () => {
  expect(lengthFor(effort, [warmUp(401, 5)])).toBe(30 * 50 * 5);
});

it('no measurement is shorter than it is said to be, or endless', () => {
  expect(lengthFor(effort, [warmUp(10_001, 0.1)])).toBe(1000);
  expect(lengthFor(effort, [warmUp(3, 1000)])).toBe(15_000);
  expect(lengthFor(effort, [warmUp(1, 1)])).toBe(1000);
});
