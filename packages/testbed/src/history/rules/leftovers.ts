import type { Levels } from '../event.js';
import type { Story } from '../story.js';
import type { Finding, Violation } from './rule.js';

/**
 * Decision 6: nothing is left behind. Keys, nodes, rows, leases, connections, timers, listeners: each kind that was
 * counted before is counted after, and is not above its level. What was never counted again is not known to be gone.
 */
export function leftovers(story: Story): Finding {
  const violations: Violation[] = [];
  const doubts: string[] = [];
  let checked = 0;
  const before = byScope(story.levels, 'before');
  const after = byScope(story.levels, 'after');
  for (const scope of new Set([...before.keys(), ...after.keys()])) {
    const from = before.get(scope);
    const to = after.get(scope);
    if (to === undefined && story.deaths.has(scope)) continue;
    if (from === undefined || to === undefined) {
      doubts.push(`${scope} was counted only ${from === undefined ? 'after' : 'before'} the run`);
      continue;
    }
    for (const kind of new Set([...Object.keys(from.counts), ...Object.keys(to.counts)])) {
      const had = from.counts[kind] ?? 0;
      const has = to.counts[kind] ?? 0;
      checked += 1;
      if (has <= had) continue;
      violations.push({
        rule: 'leftovers',
        kind: 'left-behind',
        at: story.until,
        message: `${scope}: ${has} ${kind} after the run, ${had} before`,
      });
    }
  }
  return { checked, violations, doubts, counts: {} };
}

/** The first count before, the last count after. */
function byScope(levels: readonly Levels[], phase: Levels['phase']): Map<string, Levels> {
  const scopes = new Map<string, Levels>();
  for (const level of levels) {
    if (level.phase === phase && (phase === 'after' || !scopes.has(level.scope)))
      scopes.set(level.scope, level);
  }
  return scopes;
}
