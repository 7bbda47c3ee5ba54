import type { Locks } from '@holdfast/core';
import type { ChaosTarget, RunningTarget } from '../chaos/target.js';
import type { Random } from '../random/random.js';

/** A load on one backend, and what must be true after it. */
export interface Scenario {
  /** As in `--scenario`. */
  readonly id: string;
  readonly description: string;
  /** How much, unless `--count` says otherwise: acquisitions, waiters, names or connections. */
  readonly count: number;
  /** Why it makes no sense on this target, if so. */
  notFor?(target: ChaosTarget): string | undefined;
  play(scene: Scene): Promise<Findings>;
}

export interface Scene {
  readonly target: ChaosTarget;
  readonly running: RunningTarget;
  /** Connects as worker number n, in this process. */
  open(worker: number): Promise<Locks>;
  readonly count: number;
  readonly random: Random;
}

/** What came of it. */
export interface Findings {
  /** For people: rates, times, sizes. */
  readonly figures: Readonly<Record<string, number | string>>;
  /** What should not be so. None: it passed. */
  readonly faults: readonly string[];
}

/** What is above its level before, as a fault each. */
export function above(
  where: string,
  before: Readonly<Record<string, number>>,
  after: Readonly<Record<string, number>>,
): string[] {
  return Object.entries(after)
    .filter(([kind, count]) => count > (before[kind] ?? 0))
    .map(([kind, count]) => `${where}: ${count} ${kind}, ${before[kind] ?? 0} before`);
}

/** Counts again until nothing is above its level before, or the time is up. */
export async function settled(
  count: () => Promise<Readonly<Record<string, number>>>,
  before: Readonly<Record<string, number>>,
  within: number,
): Promise<Readonly<Record<string, number>>> {
  const deadline = performance.now() + within;
  for (;;) {
    const counts = await count();
    if (above('', before, counts).length === 0 || performance.now() > deadline) return counts;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
