import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkHistory } from './checker.js';
import type { HistoryEvent } from './event.js';
import type { RuleId } from './rules/rule.js';
import { simulateRun } from './simulated-run.js';
import { type Hold, tellStory } from './story.js';

const runs = fc
  .record({
    seed: fc.integer({ min: 0, max: 2 ** 31 }),
    sessions: fc.integer({ min: 8, max: 30 }),
    lanes: fc.integer({ min: 2, max: 8 }),
    names: fc.integer({ min: 1, max: 3 }),
    trouble: fc.double({ min: 0, max: 0.5, noNaN: true }),
  })
  .map((options) => ({ options, events: simulateRun(options) }));

/** As `runs`, with many on few names, so that there is always something to spoil. */
const crowdedRuns = fc
  .record({ seed: fc.integer({ min: 0, max: 2 ** 31 }), lanes: fc.integer({ min: 5, max: 10 }) })
  .map(({ seed, lanes }) => simulateRun({ seed, lanes, sessions: 20, names: 1, trouble: 0.1 }));

/** Two holds of one name, one right after the other, of different processes. */
function successions(events: readonly HistoryEvent[]): { earlier: Hold; later: Hold }[] {
  const holds = tellStory(events)
    .holds.filter(({ claims }) => claims.length > 0)
    .sort((a, b) => (a.claims[0]?.from ?? 0) - (b.claims[0]?.from ?? 0));
  return holds.flatMap((later, index) => {
    const earlier = holds[index - 1];
    return earlier === undefined || earlier.process === later.process ? [] : [{ earlier, later }];
  });
}

function isGrantOf(event: HistoryEvent, hold: Hold): boolean {
  return event.type === 'ok' && event.action === 'acquire' && event.owner === hold.owner;
}

function inOrder(events: readonly HistoryEvent[]): HistoryEvent[] {
  return [...events].sort((a, b) => a.at - b.at);
}

/** Ways to spoil a right history: each breaks one promise, which the checker must name. */
const MUTATIONS: Readonly<
  Record<string, { rule: RuleId; spoil: (events: HistoryEvent[], pick: number) => HistoryEvent[] }>
> = {
  'two grants exchange their tokens': {
    rule: 'tokens',
    spoil(events, pick) {
      const { earlier, later } = at(successions(events), pick);
      return events.map((event) => {
        if (isGrantOf(event, earlier)) return { ...event, token: String(later.token) } as HistoryEvent;
        if (isGrantOf(event, later)) return { ...event, token: String(earlier.token) } as HistoryEvent;
        return event;
      });
    },
  },
  'a grant has the token of the one before': {
    rule: 'tokens',
    spoil(events, pick) {
      const { earlier, later } = at(successions(events), pick);
      return events.map((event) =>
        isGrantOf(event, later) ? ({ ...event, token: String(earlier.token) } as HistoryEvent) : event,
      );
    },
  },
  'a holder is stopped instead of releasing, and its validity reaches into the next hold': {
    rule: 'exclusion',
    spoil(events, pick) {
      const { earlier, later } = at(successions(events), pick);
      const clash = (later.claims[0]?.from ?? 0) + 0.001;
      return events
        .filter(
          (event) =>
            !(
              (event.type === 'invoke' && event.action === 'release' && event.owner === earlier.owner) ||
              (event.type === 'lost' && event.owner === earlier.owner) ||
              (event.type === 'process-end' && event.of === earlier.process) ||
              (event.type === 'held' && event.owner === earlier.owner)
            ),
        )
        .map((event) => (isGrantOf(event, earlier) ? ({ ...event, until: clash } as HistoryEvent) : event));
    },
  },
  'the register takes a write with the token of the holder before': {
    rule: 'register',
    spoil(events, pick) {
      const writes = events.filter((event) => event.type === 'fenced-write' && event.accepted);
      const index = 1 + (pick % (writes.length - 1));
      const write = writes[index] as HistoryEvent & { type: 'fenced-write' };
      const stale = { ...write, token: String(BigInt(write.token) - 1n) };
      return inOrder([...events, stale]);
    },
  },
  'a waiter that asked later is served first': {
    rule: 'fairness',
    spoil(events, pick) {
      const overtakable = successions(events).filter(
        ({ earlier, later }) =>
          later.queuedAt !== undefined &&
          later.queuedAt + 0.001 < earlier.acquisition.endedAt &&
          earlier.acquisition.invokedAt < later.queuedAt,
      );
      const { earlier, later } = at(overtakable, pick);
      const asked = (later.queuedAt ?? 0) + 0.0005;
      // Without the faults, every waiter is a witness.
      return inOrder(
        events
          .filter(
            (event) => event.type !== 'fault' && !(event.type === 'queued' && event.owner === earlier.owner),
          )
          .map((event) =>
            event.type === 'invoke' &&
            event.action === 'acquire' &&
            event.process === earlier.process &&
            event.at === earlier.acquisition.invokedAt
              ? { ...event, at: asked }
              : event,
          ),
      );
    },
  },
  'nobody holds any more after a fault, though they are there': {
    rule: 'recovery',
    spoil(events) {
      const cut = (events.at(-1)?.at ?? 0) + 1;
      const fault = { id: 'last', fault: 'restart', recoverWithin: 10 };
      const asking = { op: 1, action: 'acquire', name: 'n0', queue: true, ttl: 5 } as const;
      return [
        ...events,
        { at: cut, process: 'testbed', type: 'fault', phase: 'inject', ...fault },
        { at: cut + 1000, process: 'testbed', type: 'fault', phase: 'heal', id: 'last' },
        { at: cut + 1001, process: 'late', type: 'invoke', ...asking },
        { at: cut + 1012, process: 'late', type: 'fail', op: 1, reason: 'contended' },
      ];
    },
  },
  'a key stays behind': {
    rule: 'leftovers',
    spoil: (events) =>
      events.map((event) =>
        event.type === 'levels' && event.phase === 'after' ? { ...event, counts: { keys: 2 } } : event,
      ),
  },
};

function at<T>(list: readonly T[], pick: number): T {
  const item = list[pick % list.length];
  if (item === undefined) throw new Error('the run gives nothing to spoil');
  return item;
}

describe('right histories', () => {
  test('of a lock that keeps its promises pass, whatever goes wrong around it', () => {
    fc.assert(
      fc.property(runs, ({ events }) => {
        const { verdict, violations, doubts } = checkHistory(events);
        expect({ verdict, violations, doubts }).toEqual({ verdict: 'pass', violations: [], doubts: [] });
      }),
      { numRuns: 300 },
    );
  });
});

describe('spoiled histories', () => {
  test.each(Object.entries(MUTATIONS))('fail by the right rule: %s', (_title, { rule, spoil }) => {
    fc.assert(
      fc.property(crowdedRuns, fc.nat(), (events, pick) => {
        expect(checkHistory(events).verdict).toBe('pass');
        const spoiled = checkHistory(spoil(events, pick));
        expect(spoiled.verdict).toBe('fail');
        expect(spoiled.violations.map((violation) => violation.rule)).toContain(rule);
      }),
      { numRuns: 60 },
    );
  });
});

describe('long histories', () => {
  const long = simulateRun({ seed: 7, lanes: 25, sessions: 2_000, names: 1, trouble: 0.05 });
  const operations = long.filter(({ type }) => type === 'invoke').length;

  test('of a hundred thousand operations on one name are judged in seconds', () => {
    expect(operations).toBeGreaterThan(85_000);
    const started = performance.now();
    expect(checkHistory(long).verdict).toBe('pass');
    expect(performance.now() - started).toBeLessThan(20_000);
  });

  test('grow the time in step with their length', () => {
    // Counted in the steps of the only search, which time on a noisy machine would blur.
    const writes = (count: number): HistoryEvent[] =>
      Array.from({ length: count }, (_, index): HistoryEvent[] => [
        {
          at: index,
          process: 'p',
          type: 'invoke',
          op: index,
          action: 'write',
          name: 'a',
          token: String(index >> 2),
        },
        { at: index + 0.5, process: 'p', type: 'ok', op: index, action: 'write', accepted: true },
        {
          at: index + 0.6,
          process: 'q',
          type: 'invoke',
          op: index,
          action: 'write',
          name: 'a',
          token: String(index >> 2),
        },
      ]).flat();
    const options = { demand: [], searchBudget: 40 * 50_000 } as const;
    expect(checkHistory(writes(50_000), options).verdict).toBe('pass');
  });
});
