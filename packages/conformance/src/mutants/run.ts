/**
 * Shows that the suite can fail: every mutant must be caught, by the case that it names; the backend as it is must
 * pass those same cases. Prints a table, and exits with 1 if a mutant survives.
 */
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startVitest, type TestCase } from 'vitest/node';
import { CONTROL, MUTANTS } from './mutants.js';

const here = dirname(fileURLToPath(import.meta.url));
const verdicts = await playAll();

const survivors = MUTANTS.filter((mutant) => !isCaught(mutant.name));
const spoiled = verdicts.filter(({ subject, failed }) => subject === CONTROL && failed !== undefined);
const unplayed = verdicts.length === 0;

for (const mutant of MUTANTS) {
  const { guarantee, promise } = mutant.caughtBy;
  const verdict = verdicts.find(({ subject }) => subject === mutant.name);
  console.log(`${isCaught(mutant.name) ? 'caught  ' : 'SURVIVED'}  ${mutant.name}`);
  console.log(`            by ${guarantee} › ${promise}`);
  if (verdict?.failed !== undefined) console.log(`            ${verdict.failed}`);
}
for (const { promise, failed } of spoiled)
  console.log(`FAILED without a fault: ${promise}\n            ${failed}`);
console.log(
  `${MUTANTS.length - survivors.length} of ${MUTANTS.length} mutants caught, ${survivors.length} survived`,
);
process.exitCode = survivors.length > 0 || spoiled.length > 0 || unplayed ? 1 : 0;

interface Verdict {
  readonly subject: string;
  readonly promise: string;
  /** Why it failed, in a line. */
  readonly failed: string | undefined;
}

function isCaught(name: string): boolean {
  return verdicts.some(({ subject, failed }) => subject === name && failed !== undefined);
}

async function playAll(): Promise<readonly Verdict[]> {
  const vitest = await startVitest('test', [], {
    root: join(here, '../..'),
    config: false,
    include: ['dist/mutants/subject.js'],
    exclude: [],
    watch: false,
    pool: 'forks',
    maxConcurrency: 8,
    reporters: [{}],
    // A broken backend may well reject where nobody listens; only the verdicts of the cases count here.
    dangerouslyIgnoreUnhandledErrors: true,
  });
  const cases = vitest.state.getTestModules().flatMap((module) => [...module.children.allTests()]);
  const found = cases.map(verdictOf);
  await vitest.close();
  process.exitCode = 0;
  return found;
}

function verdictOf(test: TestCase): Verdict {
  const subject = MUTANTS.find(({ name }) =>
    test.fullName.startsWith(`mutants > ${name} keeps its promises`),
  );
  const { state, errors } = test.result();
  const message = errors?.[0]?.message.split('\n')[0] ?? 'no reason given';
  return {
    subject: subject?.name ?? CONTROL,
    promise: test.name,
    failed: state === 'failed' ? message : undefined,
  };
}
