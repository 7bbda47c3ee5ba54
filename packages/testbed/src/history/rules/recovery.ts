import type { Acquisition, FaultSpan, Span, Story } from '../story.js';
import { byName, type Finding, lowerBound, type Violation } from './rule.js';

/** How a name fared after a fault had healed. */
type Outcome =
  | { readonly kind: 'recovered'; readonly after: number }
  | { readonly kind: 'late'; readonly proof: Acquisition }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'not-wanted' };

/** After which fault, how long it took until every name that was wanted was held again. */
export interface Recovery {
  readonly fault: FaultSpan;
  /** ms, the slowest name. */
  readonly longest: number;
}

/**
 * Decision 5: after each fault heals, somebody holds again within the fault's bound.
 *
 * Judged for each name that somebody wanted: a name is late when an acquisition waited, or was refused, beyond the
 * bound while nobody had claimed the name since the healing. An acquisition of unknown outcome may have held it, and
 * then nothing is proved; nor where the next fault came first, or nobody tried.
 */
export function recovery(story: Story): Finding {
  const violations: Violation[] = [];
  const doubts: string[] = [];
  let longest = 0;
  let checked = 0;
  const names = namesOf(story);
  for (const fault of story.faults) {
    if (fault.healedAt === Infinity) {
      doubts.push(`${fault.fault} (${fault.id}) never healed`);
      continue;
    }
    const outcomes = names.map((name) => ({ name, outcome: judge(name, fault, story) }));
    const recovered = outcomes.filter(({ outcome }) => outcome.kind === 'recovered');
    if (recovered.length > 0) checked += 1;
    for (const { name, outcome } of outcomes) {
      if (outcome.kind === 'recovered') longest = Math.max(longest, outcome.after);
      if (outcome.kind === 'unknown') {
        doubts.push(
          `${name.name}: after ${fault.fault} (${fault.id}) only an acquisition of unknown outcome may have held`,
        );
      }
      if (outcome.kind === 'late') violations.push(late(name.name, fault, outcome.proof));
    }
    if (outcomes.every(({ outcome }) => outcome.kind === 'not-wanted')) {
      doubts.push(`nobody tried to hold anything after ${fault.fault} (${fault.id}) had healed`);
    }
  }
  return { checked, violations, doubts, counts: { faults: story.faults.length, longestRecovery: longest } };
}

interface NameRecord {
  readonly name: string;
  /** Ascending by start, with the latest end up to each. */
  readonly claims: readonly (Span & { readonly latest: number })[];
  readonly acquisitions: readonly Acquisition[];
}

function namesOf(story: Story): NameRecord[] {
  const holds = byName(story.holds);
  return [...byName(story.acquisitions)].map(([name, acquisitions]) => {
    let latest = -Infinity;
    const claims = (holds.get(name) ?? [])
      .flatMap((hold) => hold.claims)
      .sort((a, b) => a.from - b.from)
      .map((claim) => {
        latest = Math.max(latest, claim.until);
        return { ...claim, latest };
      });
    return { name, claims, acquisitions };
  });
}

function judge({ claims, acquisitions }: NameRecord, fault: FaultSpan, story: Story): Outcome {
  const healed = fault.healedAt;
  const due = healed + fault.recoverWithin;
  const held = firstHeld(claims, healed);
  if (held <= due) return { kind: 'recovered', after: held - healed };
  const interrupted = story.faults.some(
    (other) => other !== fault && other.injectedAt <= due && other.healedAt > healed,
  );
  if (interrupted) return { kind: 'not-wanted' };
  const maybeHeld = acquisitions.some(
    ({ outcome, invokedAt, endedAt, process }) =>
      (outcome === 'unknown' || (outcome === 'open' && story.deaths.has(process))) &&
      invokedAt <= due &&
      Math.min(endedAt, story.deaths.get(process) ?? Infinity) >= healed,
  );
  if (maybeHeld) return { kind: 'unknown' };
  const proof = acquisitions.find(
    ({ outcome, reason, invokedAt, endedAt }) =>
      Math.min(endedAt, story.until) > due &&
      invokedAt < held &&
      (outcome === 'failed' ? reason === 'contended' && endedAt < held : invokedAt <= due),
  );
  return proof === undefined ? { kind: 'not-wanted' } : { kind: 'late', proof };
}

/** The first moment from `time` on at which the name is claimed. */
function firstHeld(claims: NameRecord['claims'], time: number): number {
  const next = lowerBound(claims, time, ({ from }) => from);
  const before = claims[next - 1];
  if (before !== undefined && before.latest >= time) return time;
  return claims[next]?.from ?? Infinity;
}

function late(name: string, fault: FaultSpan, proof: Acquisition): Violation {
  return {
    rule: 'recovery',
    kind: 'nobody-holds',
    name,
    at: fault.healedAt + fault.recoverWithin,
    message: `${name}: nobody held it within ${fault.recoverWithin} ms after ${fault.fault} (${fault.id}) had healed, though ${proof.process} asked for it`,
  };
}
