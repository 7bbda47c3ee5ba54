/** What `run.ts` runs: for each mutant the case that must notice, and the same cases on the memory backend as it is. */
import { MemoryStore, memoryBackend, systemClock } from '@holdfast/core';
import { describe } from 'vitest';
import { describeCases } from '../suite.js';
import type { Mutant } from './mutant.js';
import { CONTROL, MUTANTS } from './mutants.js';

describe.concurrent('mutants', () => {
  const cases = MUTANTS.map(({ caughtBy }) => caughtBy);
  play({ name: CONTROL, breed: () => (inner) => inner }, cases);
  for (const mutant of MUTANTS) play(mutant, [mutant.caughtBy]);
});

function play({ name, breed }: Pick<Mutant, 'name' | 'breed'>, cases: readonly Mutant['caughtBy'][]): void {
  const store = new MemoryStore(systemClock);
  const broken = breed();
  const isChosen = (guarantee: string, promise: string): boolean =>
    cases.some((chosen) => chosen.guarantee === guarantee && chosen.promise === promise);
  const create = ({ prefix }: { readonly prefix: string }) => broken(memoryBackend({ store, prefix }));
  describeCases(name, { create, child: { url: 'memory:' } }, isChosen);
}
