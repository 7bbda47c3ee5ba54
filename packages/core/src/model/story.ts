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
  | { readonly do: 'resume'; readonly client: number }
  | { readonly do: 'set wall'; readonly client: number; readonly by: number }
  | { readonly do: 'pass time'; readonly ms: number };

/** A whole run: who takes part, what the lines between them and the server do, what happens. */
export interface Story {
  /** For each client the rate of its clock against the server's: they differ by less than 1 %. */
  readonly rates: readonly number[];
  /** For each client what becomes of its requests, in order. */
  readonly fates: readonly (readonly Fate[])[];
  readonly names: number;
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

const fate: fc.Arbitrary<Fate> = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Fate>({ kind: 'pass' }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('slow' as const),
      there: fc.constantFrom(0, 1, 50, 300, 900),
      back: fc.constantFrom(0, 1, 50, 300, 900),
    }),
  },
  { weight: 2, arbitrary: fc.constant<Fate>({ kind: 'answer lost' }) },
  { weight: 1, arbitrary: fc.constant<Fate>({ kind: 'refused' }) },
  { weight: 1, arbitrary: fc.constant<Fate>({ kind: 'answer swallowed' }) },
  { weight: 1, arbitrary: fc.constant<Fate>({ kind: 'request swallowed' }) },
);

function step({ force, pauses }: Scope): fc.Arbitrary<Step> {
  const acquire = fc.record({
    do: fc.constant('acquire' as const),
    client: index,
    name: index,
    wait: fc.constantFrom(0, 200, 3000, Infinity),
    ttl,
    renew: fc.boolean(),
    maxHold: fc.constantFrom(Infinity, Infinity, 700, 3000),
    minHold: fc.constantFrom(0, 0, 0, 800, 3000),
  });
  const always: fc.WeightedArbitrary<Step>[] = [
    { weight: 6, arbitrary: acquire },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('abort' as const), which: index }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant('release' as const), which: index }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('extend' as const), which: index, ttl }) },
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
    { weight: 3, arbitrary: fc.record({ do: fc.constant('resume' as const), client: index }) },
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
  const line: fc.Arbitrary<Fate[]> = fc.array(fate, { maxLength: faults ? 40 : 0 });
  return fc.record({
    rates: fc.array(rate, { minLength: clients, maxLength: clients }),
    fates: fc.array(line, { minLength: clients, maxLength: clients }),
    names: fc.integer({ min: 1, max: names }),
    steps: fc.array(step(scope), { minLength: 1, maxLength: 40 }),
  });
}
