import type { Story } from '../story.js';

/** The six decisions about a history. */
export const RULES = ['tokens', 'exclusion', 'register', 'fairness', 'recovery', 'leftovers'] as const;

/** One of the six decisions. */
export type RuleId = (typeof RULES)[number];

/** `unknown`: what was recorded does not decide it. Never to be taken for `pass`. */
export type Verdict = 'pass' | 'fail' | 'unknown';

/** A broken promise, and where to look for it. */
export interface Violation {
  readonly rule: RuleId;
  /** Which of the rule's promises, such as `token-not-rising`. */
  readonly kind: string;
  readonly name?: string;
  /** ms on the history's clock. */
  readonly at: number;
  readonly message: string;
}

/** What one rule found. */
export interface Finding {
  /** How many things it judged: grants, writes, pairs, faults, counts. */
  readonly checked: number;
  readonly violations: readonly Violation[];
  /** Reasons for which it could not decide. */
  readonly doubts: readonly string[];
  /** What it counted, violations or not. */
  readonly counts: Readonly<Record<string, number>>;
}

/** What the backend under test promised. */
export interface Promises {
  /** `fencing-only`: two may hold at once (a failover that loses a grant, say); overlaps are counted, not condemned. */
  readonly exclusion: 'promised' | 'fencing-only';
  /** With `none`, inversions are counted, not condemned. */
  readonly fairness: 'fifo' | 'none';
  /** Steps that a search may take for each name before it gives up and says `unknown`. */
  readonly searchBudget: number;
}

/** A decision about a history. */
export type Rule = (story: Story, promises: Promises) => Finding;

/** Groups things by their lock's name. */
export function byName<T extends { readonly name: string }>(things: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const thing of things) {
    const group = groups.get(thing.name);
    if (group === undefined) groups.set(thing.name, [thing]);
    else group.push(thing);
  }
  return groups;
}

/** The index of the first element that is not below `value`, by `key`, in an ascending list. */
export function lowerBound<T, V extends number | bigint>(
  list: readonly T[],
  value: V,
  key: (item: T) => V,
): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (key(list[middle] as T) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** An owner, short enough for a message. */
export function short(owner: string): string {
  return owner.length <= 24 ? owner : `…${owner.slice(-20)}`;
}
