import fc from 'fast-check';
import type { Fate } from './network.js';

/** One thing that happens. Clients, names and handles are chosen by number, modulo how many there are. */
export type Step =
  | {
      readonly do: 'acquire';
      readonly client: number;
      readonly name: number;
      readonly wait: number;
      readonly ttl: number;
      readonly renew: boolean;
      readonly maxHold: number;
      readonly minHold: number;
    }
  | { readonly do: 'abort'; readonly which: number }
  | { readonly do: 'release'; readonly which: number }
  | { readonly do: 'extend'; readonly which: number; readonly ttl: number }
  | { readonly do: 'verify'; readonly which: number }
  | { readonly do: 'hand over'; readonly which: number; readonly client: number }
  | { readonly do: 'force'; readonly client: number; readonly name: number }
  | { readonly do: 'stop'; readonly client: number }
  | { readonly do: 'suspend'; readonly client: number }
  /** What the process meets first: the timers that fell due meanwhile, or the answers that came in. */
  | { readonly do: 'resume'; readonly client: number; readonly first: 'timers' | 'answers' }
  | { readonly do: 'set wall'; readonly client: number; readonly by: number }
  | { readonly do: 'pass time'; readonly ms: number };

/** A whole run: who takes part, what the lines between them and the server do, what happens. */
export interface Story {
  /** For each client the rate of its clock against the server's: they differ by less than 1 %. */
  readonly rates: readonly number[];
  /** For each client what becomes of its requests, in order. */
  readonly fates: readonly (readonly Fate[])[];
  readonly names: number;
  /** What the dice of the engine (jitter, backoff) start from, so that a story told again goes the same way. */
  readonly luck: number;
  readonly steps: readonly Step[];
}

/** What the model allows to happen. */
export interface Scope {
  readonly clients: number;
  readonly names: number;
  /** Requests may be lost, late or refused. */
  readonly faults: boolean;
  /** Processes may stand still, clocks be set. */
  readonly pauses: boolean;
  /** Someone may break a lock by force. */
  readonly force: boolean;
}

const index = fc.nat({ max: 7 });
const ttl = fc.constantFrom(500, 1000, 2000, 5000);

/** fast-check's own measure keeps an array to about ten elements: too short for most of what can go wrong. */
const LONG = { maxLength: 120, size: 'max' } as const;

const pass = fc.constant<Fate>({ kind: 'pass' });
const slow: fc.Arbitrary<Fate> = fc.record({
  kind: fc.constant('slow' as const),
  there: fc.constantFrom(0, 1, 50, 300, 900),
  back: fc.constantFrom(0, 1, 50, 300, 900),
});
const unreachable = fc.constantFrom<Fate>({ kind: 'refused' }, { kind: 'request swallowed' });
const unheard = fc.constantFrom<Fate>({ kind: 'answer lost' }, { kind: 'answer swallowed' });

const busy = fc.oneof(pass, slow);
const bad = fc.oneof(
  { weight: 6, arbitrary: pass },
  { weight: 3, arbitrary: slow },
  { weight: 3, arbitrary: unheard },
  { weight: 2, arbitrary: unreachable },
);

/** All is well for a while, then for a while every request fails alike. */
const outages: fc.Arbitrary<Fate[]> = fc
  .array(
    fc.tuple(
      fc.array(busy, { minLength: 1, maxLength: 8, size: 'max' }),
      fc.oneof({ weight: 3, arbitrary: unreachable }, { weight: 1, arbitrary: unheard }),
      fc.integer({ min: 3, max: 12 }),
    ),
    { maxLength: 10, size: 'max' },
  )
  .map((drawn) =>
    drawn.flatMap(([calm, fate, times]) => [...calm, ...Array.from({ length: times }, () => fate)]),
  );

/** What the requests of a line meet. The lines differ: where everything fails at once, nothing is seen to go wrong. */
const weather = fc.oneof(
  fc.constant<Fate[]>([]),
  { weight: 1, arbitrary: fc.array(busy, LONG) },
  { weight: 1, arbitrary: fc.array(bad, LONG) },
  { weight: 2, arbitrary: outages },
);

function step({ force, pauses }: Scope): fc.Arbitrary<Step> {
  const acquire = fc.record({
    do: fc.constant('acquire' as const),
    client: index,
    name: index,
    wait: fc.constantFrom(0, 200, 3000, Infinity, Infinity),
    ttl,
    renew: fc.boolean(),
    maxHold: fc.constantFrom(Infinity, Infinity, Infinity, 700, 3000),
    minHold: fc.constantFrom(0, 0, 0, 800, 3000),
  });
  const always: fc.WeightedArbitrary<Step>[] = [
    { weight: 6, arbitrary: acquire },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('abort' as const), which: index }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant('release' as const), which: index }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('extend' as const), which: index, ttl }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('verify' as const), which: index }) },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant('hand over' as const), which: index, client: index }),
    },
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('pass time' as const),
        ms: fc.constantFrom(0, 1, 20, 150, 400, 1000, 2500, 6000),
      }),
    },
  ];
  const forcing: fc.WeightedArbitrary<Step> = {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('force' as const), client: index, name: index }),
  };
  const pausing: fc.WeightedArbitrary<Step>[] = [
    { weight: 1, arbitrary: fc.record({ do: fc.constant('stop' as const), client: index }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('suspend' as const), client: index }) },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('resume' as const),
        client: index,
        first: fc.constantFrom('timers' as const, 'answers' as const),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant('set wall' as const),
        client: index,
        by: fc.constantFrom(-3_600_000, -1000, 1000, 3_600_000),
      }),
    },
  ];
  return fc.oneof(...always, ...(force ? [forcing] : []), ...(pauses ? pausing : []));
}

/** Stories within a scope. */
export function story(scope: Scope): fc.Arbitrary<Story> {
  const { clients, names, faults } = scope;
  const rate = fc.constantFrom(1, 0.9952, 1.0047);
  const line: fc.Arbitrary<Fate[]> = faults ? weather : fc.constant<Fate[]>([]);
  return fc.record({
    rates: fc.array(rate, { minLength: clients, maxLength: clients }),
    fates: fc.array(line, { minLength: clients, maxLength: clients }),
    names: fc.integer({ min: 1, max: names }),
    luck: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
    steps: fc.array(step(scope), { minLength: 1, ...LONG }),
  });
}
