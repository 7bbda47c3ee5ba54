import type { Scenario } from './results.js';
import type { Finding } from './scenarios.js';
import { median } from './stats.js';

/** A figure of each scenario, with its unit. */
export type Found = [scenario: Scenario, unit: string, value: number][];

/**
 * What the waiters of all processes saw together.
 *
 * A lock without a queue goes back, most of the time, to the waiter that has just released it: nobody else has asked yet.
 * So the grants that went to another waiter, the hand-overs, are counted besides. One is timed from the release before it,
 * whoever's that was.
 */
export function underContention(findings: readonly Finding[]): Found {
  const holds: { readonly granted: number; readonly released: number; readonly waiter: string }[] = [];
  const grants: number[] = [];
  let errors = 0;
  for (const [process, finding] of findings.entries()) {
    if (finding.kind !== 'contended') throw new Error(`unexpected finding ${finding.kind}`);
    errors += finding.errors;
    for (const [granted, released, waiter] of finding.holds)
      holds.push({ granted, released, waiter: `${process}/${waiter}` });
    grants.push(...finding.grantsOfWaiter);
  }
  holds.sort((a, b) => a.granted - b.granted);
  const turns = holds.slice(1).map(({ granted, waiter }, index) => {
    const before = holds[index];
    return { ms: granted - (before?.released ?? granted), toAnother: waiter !== before?.waiter };
  });
  const handOvers = turns.filter(({ toAnother }) => toAnother);
  const seconds = ((holds.at(-1)?.granted ?? 1) - (holds[0]?.granted ?? 0)) / 1000;
  const times = (some: typeof turns) => median(some.map(({ ms }) => ms));
  return [
    ['contended grants', 'grants/s', holds.length / seconds],
    ['contended hand-over', 'ms', times(turns)],
    ['contended grants to another', 'grants/s', handOvers.length / seconds],
    ['contended hand-over to another', 'ms', times(handOvers)],
    ['contended spread', 'most over least', Math.max(...grants) / Math.max(1, Math.min(...grants))],
    ['contended errors', 'per 1,000 grants', (errors / Math.max(1, holds.length)) * 1000],
  ];
}
