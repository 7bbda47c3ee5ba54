import { describe, it } from 'vitest';
import type { Cases, Guarantee } from './guarantee.js';
import { GUARANTEES } from './guarantees/index.js';
import { Case } from './harness/case.js';
import { TIME_FACTOR } from './harness/time.js';
import type { ConformanceOptions } from './options.js';

/** No case comes near it: each bounds its own waits. It only ends what hangs for ever, and names it. */
const CASE_TIMEOUT = 60_000 * TIME_FACTOR;

/**
 * Holds a backend to the specification: a group for each guarantee, a case for each promise.
 *
 * Cases run beside each other, each in a tenant of its own on the server, since most of them wait; `maxConcurrency` in
 * vitest's configuration says how many. Time bounds are multiplied by `HOLDFAST_TIME_FACTOR`.
 *
 * @example
 * describeConformance('redis', {
 *   create: ({ prefix }) => redisBackend({ url, prefix }),
 *   child: { url },
 * });
 */
export function describeConformance(name: string, options: ConformanceOptions): void {
  describeCases(name, options, (guarantee) => options.only?.includes(guarantee) ?? true);
}

/** Chooses among the cases, by guarantee and promise. */
export type Choice = (guarantee: string, promise: string) => boolean;

/** As {@link describeConformance}, for a choice of cases. */
export function describeCases(name: string, options: ConformanceOptions, isChosen: Choice): void {
  describe(`${name} keeps its promises`, () => {
    for (const guarantee of GUARANTEES)
      declare(guarantee.name, beside(guarantee, options), options, isChosen, true);
    for (const guarantee of GUARANTEES)
      declare(guarantee.name, alone(guarantee, options), options, isChosen, false);
  });
}

function beside({ cases, withProcesses }: Guarantee, { child }: ConformanceOptions): Cases {
  return child === undefined ? cases : { ...cases, ...withProcesses };
}

function alone({ withFaults }: Guarantee, { faults }: ConformanceOptions): Cases {
  return faults === undefined ? {} : { ...withFaults };
}

function declare(
  guarantee: string,
  cases: Cases,
  options: ConformanceOptions,
  isChosen: Choice,
  concurrent: boolean,
): void {
  const stories = Object.entries(cases).filter(([promise]) => isChosen(guarantee, promise));
  if (stories.length === 0) return;
  describe(guarantee, { concurrent, sequential: !concurrent }, () => {
    for (const [promise, story] of stories) {
      it(promise, { timeout: CASE_TIMEOUT }, () => Case.play(options, story));
    }
  });
}
