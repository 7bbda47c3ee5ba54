import { type FencedOperation, linearize } from '../linearize.js';
import type { ObservedWrite, RegisterWrite, Story } from '../story.js';
import { byName, type Finding, type Promises, type Violation } from './rule.js';

/**
 * Decision 3: a fenced register never accepts a stale token; an unfenced one counts the updates lost.
 *
 * A register that keeps its own record is judged by the order of its lines. One that does not is judged by what its
 * writers saw: there must be an order of the writes, each between its call and its answer, that explains every answer;
 * a write of unknown outcome may stand anywhere after its call, or nowhere.
 */
export function register(story: Story, promises: Promises): Finding {
  const violations: Violation[] = [];
  const doubts: string[] = [];
  const counts = { accepted: 0, refused: 0, unfencedWrites: 0, updatesLost: 0, staleUnfenced: 0 };
  for (const [name, writes] of byName(story.registerWrites)) {
    violations.push(...judgeRecord(name, writes, counts));
  }
  const observed = byName(story.observedWrites.filter(({ outcome }) => outcome !== 'failed'));
  for (const [name, writes] of observed) {
    for (const { outcome } of writes) {
      if (outcome === 'accepted' || outcome === 'refused') counts[outcome] += 1;
    }
    const { verdict, stuckAt } = linearize(writes.map(operation), promises.searchBudget);
    if (verdict === 'unknown') {
      doubts.push(
        `${name}: the search for an order of its writes ran out after ${promises.searchBudget} steps`,
      );
    }
    if (verdict === 'fail') {
      violations.push({
        rule: 'register',
        kind: 'no-order-explains-writes',
        name,
        at: stuckAt,
        message: `${name}: no order of the writes to its fenced register explains every answer`,
      });
    }
  }
  const checked = story.registerWrites.length + story.observedWrites.length;
  return { checked, violations, doubts, counts };
}

function judgeRecord(
  name: string,
  writes: readonly RegisterWrite[],
  counts: {
    accepted: number;
    refused: number;
    unfencedWrites: number;
    updatesLost: number;
    staleUnfenced: number;
  },
): Violation[] {
  const violations: Violation[] = [];
  let newest = -1n;
  let newestUnfenced = -1n;
  const complain = (kind: string, at: number, message: string): void => {
    violations.push({ rule: 'register', kind, name, at, message: `${name}: ${message}` });
  };
  for (const write of writes) {
    const token = BigInt(write.token);
    if (write.type === 'unfenced-write') {
      counts.unfencedWrites += 1;
      if (write.replaced !== write.base) counts.updatesLost += 1;
      if (token < newestUnfenced) counts.staleUnfenced += 1;
      else newestUnfenced = token;
      continue;
    }
    counts[write.accepted ? 'accepted' : 'refused'] += 1;
    if (write.accepted && token < newest) {
      complain(
        'stale-token-accepted',
        write.at,
        `the register took ${token} of ${write.writer} after ${newest}`,
      );
    }
    if (!write.accepted && token >= newest) {
      complain(
        'fresh-token-refused',
        write.at,
        `the register refused ${token} of ${write.writer}, and had seen ${newest}`,
      );
    }
    if (write.accepted && token > newest) newest = token;
  }
  return violations;
}

function operation(write: ObservedWrite): FencedOperation {
  return {
    token: write.token,
    from: write.invokedAt,
    until: write.endedAt,
    outcome: write.outcome === 'accepted' || write.outcome === 'refused' ? write.outcome : 'unknown',
  };
}
