import type { Hold, Story } from '../story.js';
import { byName, type Finding, type Promises, short, type Violation } from './rule.js';

/**
 * Decision 2: the claimed validity intervals of one name never intersect, and a hold whose loss was signalled never
 * claims again.
 *
 * What a holder claims ends with its release (from the call on), its loss (from the signal on) or the death of its
 * process; being stopped ends nothing: a handle that promised validity is believed. An acquisition of unknown outcome
 * has no handle and claims nothing, whatever the server thinks.
 */
export function exclusion(story: Story, promises: Promises): Finding {
  const overlaps: Violation[] = [];
  for (const [name, holds] of byName(story.holds)) overlaps.push(...overlapping(name, holds));
  const revivals = story.holds.flatMap((hold) => revival(hold));
  const lost = story.holds.filter(({ lostAt }) => lostAt !== undefined).length;
  return {
    checked: story.holds.reduce((sum, { claims }) => sum + claims.length, 0),
    violations: promises.exclusion === 'promised' ? [...overlaps, ...revivals] : revivals,
    doubts: [],
    counts: { overlaps: overlaps.length, lost },
  };
}

function overlapping(name: string, holds: readonly Hold[]): Violation[] {
  const claims = holds
    .flatMap((hold) => hold.claims.map((claim) => ({ hold, ...claim })))
    .sort((a, b) => a.from - b.from);
  const violations: Violation[] = [];
  let [latest] = claims;
  for (const claim of claims) {
    if (latest === undefined) break;
    if (latest.hold !== claim.hold && claim.from < latest.until) {
      const overlap = Math.min(latest.until, claim.until) - claim.from;
      violations.push({
        rule: 'exclusion',
        kind: 'two-holders',
        name,
        at: claim.from,
        message: `${name}: ${describe(claim.hold)} claims it while ${describe(latest.hold)} does, for ${overlap.toFixed(3)} ms`,
      });
    }
    if (claim.until > latest.until) latest = claim;
  }
  return violations;
}

function revival(hold: Hold): Violation[] {
  if (hold.revivedAt === undefined) return [];
  return [
    {
      rule: 'exclusion',
      kind: 'held-after-loss',
      name: hold.name,
      at: hold.revivedAt,
      message: `${hold.name}: ${describe(hold)} claims it again after its loss had been signalled`,
    },
  ];
}

function describe(hold: Hold): string {
  return `${hold.process} (${short(hold.owner)}, token ${hold.token})`;
}
