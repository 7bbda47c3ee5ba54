import type { Effort } from './results.js';
import type { Finding } from './scenarios.js';

/** Turns for each waiter, on average: with only a few, one more for some than for others already looks like a spread. */
const TURNS = 30;

/** ms: no contended measurement is longer, however slow the turns. */
const LONGEST_CONTENDED = 15_000;

/** ms that a contended measurement takes, to judge by the warm-up, for its waiters to have enough turns. */
export function lengthFor({ ms, waiters }: Effort, warmUp: readonly Finding[]): number {
  const holds = warmUp.flatMap((finding) => (finding.kind === 'contended' ? finding.holds : []));
  const times = holds.map(([granted]) => granted);
  const perTurn = (Math.max(...times) - Math.min(...times)) / Math.max(1, times.length - 1);
  return Math.max(ms, Math.min(LONGEST_CONTENDED, perTurn * TURNS * waiters || 0));
}
