import type { FaultSpan, Hold, Story } from '../story.js';
import { byName, type Finding, lowerBound, type Promises, short, type Violation } from './rule.js';

/** How many inversions of one name are told one by one; all are counted. */
const TOLD = 20;

/**
 * Decision 4: first in, first out.
 *
 * In which order the backend received two waiters is not always known: a waiter was received somewhere between its
 * call and the answer that it has a place. So only certain inversions count: the first had its place before the second
 * had asked, and yet the second held first. A waiter may lose its place by rights while it is stopped or cut
 * off, or when the server that keeps the queue fails: one that a fault touched while it waited proves nothing. A
 * waiter of unknown outcome may have been granted at any time, or have left: it proves nothing either.
 */
export function fairness(story: Story, promises: Promises): Finding {
  const violations: Violation[] = [];
  let inversions = 0;
  let waited = 0;
  for (const [name, holds] of byName(story.holds)) {
    const inOrder = [...holds].sort((a, b) => a.acquisition.endedAt - b.acquisition.endedAt);
    const overtakers = new GrantedCalls(inOrder);
    for (const hold of inOrder) {
      if (isWitness(hold, story.faults)) {
        waited += 1;
        const count = overtakers.countAskedAfter(hold.queuedAt);
        inversions += count;
        if (count > 0 && violations.length < TOLD) violations.push(inversion(name, hold, count));
      }
      overtakers.add(hold);
    }
  }
  return {
    checked: waited,
    violations: promises.fairness === 'fifo' ? violations : [],
    doubts: [],
    counts: { waited, inversions },
  };
}

function isWitness(hold: Hold, faults: readonly FaultSpan[]): hold is Hold & { queuedAt: number } {
  const { queuedAt, process } = hold;
  if (queuedAt === undefined || !hold.acquisition.queue) return false;
  return !faults.some(
    ({ touches, injectedAt, healedAt }) =>
      injectedAt <= hold.acquisition.endedAt &&
      queuedAt <= healedAt &&
      (touches === undefined || touches.includes(process)),
  );
}

function inversion(name: string, hold: Hold, count: number): Violation {
  return {
    rule: 'fairness',
    kind: 'overtaken',
    name,
    at: hold.acquisition.endedAt,
    message: `${name}: ${hold.process} (${short(hold.owner)}) had its place and was overtaken by ${count} that asked later`,
  };
}

/** Counts, among the grants added so far, those asked for after a time: a Fenwick tree over the calls. */
class GrantedCalls {
  readonly #calls: readonly number[];
  readonly #tree: Int32Array;
  #added = 0;

  constructor(holds: readonly Hold[]) {
    this.#calls = holds.map(({ acquisition }) => acquisition.invokedAt).sort((a, b) => a - b);
    this.#tree = new Int32Array(holds.length + 1);
  }

  add(hold: Hold): void {
    this.#added += 1;
    const rank = lowerBound(this.#calls, hold.acquisition.invokedAt, (call) => call) + 1;
    for (let index = rank; index < this.#tree.length; index += index & -index) {
      this.#tree[index] = (this.#tree[index] ?? 0) + 1;
    }
  }

  countAskedAfter(time: number): number {
    let index = lowerBound(this.#calls, time, (call) => call);
    // Those asked for at that very moment are not certainly later.
    while (index < this.#calls.length && this.#calls[index] === time) index += 1;
    let notAfter = 0;
    for (; index > 0; index -= index & -index) notAfter += this.#tree[index] ?? 0;
    return this.#added - notAfter;
  }
}
