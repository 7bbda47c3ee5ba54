import type { HistoryEvent } from './event.js';
import { exclusion } from './rules/exclusion.js';
import { fairness } from './rules/fairness.js';
import { leftovers } from './rules/leftovers.js';
import { recovery } from './rules/recovery.js';
import { register } from './rules/register.js';
import {
  type Finding,
  type Promises,
  RULES,
  type Rule,
  type RuleId,
  type Verdict,
  type Violation,
} from './rules/rule.js';
import { tokens } from './rules/tokens.js';
import { type Story, tellStory } from './story.js';

const DECISIONS: Readonly<Record<RuleId, Rule>> = {
  tokens,
  exclusion,
  register,
  fairness,
  recovery,
  leftovers,
};

/** What to hold a history against. */
export interface CheckOptions extends Partial<Promises> {
  /**
   * The rules that must have found something to judge: one of these that found nothing says `unknown`.
   * Default: `tokens` and `exclusion`, so that a run in which nobody ever held does not pass.
   */
  readonly demand?: readonly RuleId[];
}

/** What one rule decided. */
export interface RuleResult extends Finding {
  readonly verdict: Verdict;
}

/** What the checker decided. */
export interface CheckResult {
  /** `fail` if any rule failed, else `unknown` if any could not decide, else `pass`. */
  readonly verdict: Verdict;
  readonly rules: Readonly<Record<RuleId, RuleResult>>;
  /** All violations, in the order of time. */
  readonly violations: readonly Violation[];
  /** Why it could not decide, for each reason. */
  readonly doubts: readonly string[];
}

/**
 * Judges a merged history by the six decisions. In time near-linear in the number of events.
 *
 * A record that contradicts itself (an answer without a question, time running backwards in a process) is never
 * passed: what it says of the locks is judged all the same.
 */
export function checkHistory(events: readonly HistoryEvent[], options: CheckOptions = {}): CheckResult {
  return checkStory(tellStory(events), options);
}

/** As {@link checkHistory}, for a history already put together. */
export function checkStory(story: Story, options: CheckOptions = {}): CheckResult {
  const promises: Promises = {
    exclusion: options.exclusion ?? 'promised',
    fairness: options.fairness ?? 'fifo',
    searchBudget: options.searchBudget ?? 5_000_000,
  };
  const demand = options.demand ?? ['tokens', 'exclusion'];
  const judge = (rule: RuleId): RuleResult =>
    decide(rule, DECISIONS[rule](story, promises), demand.includes(rule));
  const rules = Object.fromEntries(RULES.map((rule) => [rule, judge(rule)])) as Record<RuleId, RuleResult>;
  const results = Object.values(rules);
  const doubts = [
    ...story.problems.map(({ message }) => `the record is not sound: ${message}`),
    ...results.flatMap((result) => result.doubts),
  ];
  const failed = results.some(({ verdict }) => verdict === 'fail');
  return {
    verdict: failed ? 'fail' : doubts.length > 0 ? 'unknown' : 'pass',
    rules,
    violations: results.flatMap(({ violations }) => violations).sort((a, b) => a.at - b.at),
    doubts,
  };
}

function decide(rule: RuleId, finding: Finding, demanded: boolean): RuleResult {
  const doubts =
    demanded && finding.checked === 0
      ? [...finding.doubts, `${rule}: nothing was found to judge`]
      : finding.doubts;
  const verdict = finding.violations.length > 0 ? 'fail' : doubts.length > 0 ? 'unknown' : 'pass';
  return { ...finding, doubts, verdict };
}
