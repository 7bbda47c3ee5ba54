import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type * as engine from './play.js';
import { type Scope, story } from './story.js';

const SOURCE = fileURLToPath(new URL('..', import.meta.url));
const CALM: Scope = { clients: 3, names: 1, faults: false, pauses: false, force: false };
const STORMY: Scope = { ...CALM, faults: true, pauses: true };
/** The same stories each time: how soon a rare one is met must not be a matter of luck. */
const SEED = 3;

/** One line of the engine, and what stands in its place. */
interface Mutant {
  readonly file: string;
  /** Must be there, once: a mutant whose line has gone would prove nothing. */
  readonly line: string;
  readonly becomes: string;
  /** Where a story is likely to show it. Default: every fault, nobody's force. */
  readonly scope?: Scope;
}

let folder: string | undefined;

afterEach(async () => {
  if (folder !== undefined) await rm(folder, { recursive: true });
  folder = undefined;
});

/** A copy of the engine with one line changed, for the same model to play. */
async function bred({ file, line, becomes }: Mutant): Promise<typeof engine> {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-engine-'));
  const copy = join(folder, 'src');
  await cp(SOURCE, copy, { recursive: true, filter: (path) => !path.endsWith('.test.ts') });
  const imports = { '#platform': './src/platform/node.ts' };
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module', imports }));
  const sound = await readFile(join(copy, file), 'utf8');
  expect(sound.split(line).length - 1, `how often ${file} has the line`).toBe(1);
  await writeFile(join(copy, file), sound.replace(line, becomes));
  return import(join(copy, 'model/play.ts'));
}

describe('the model', () => {
  it('finds nothing wrong with a copy of the engine as it is', async () => {
    const same = 'return ms * 0.01 + 2;';
    const { play } = await bred({ file: 'validity.ts', line: same, becomes: same });
    await fc.assert(
      fc.asyncProperty(story(STORMY), (told) => play(told)),
      { numRuns: 30, seed: SEED },
    );
  });
});

/** The model is no use if it does not know a wrong engine: a story must show each of these. */
describe('the model notices an engine that', () => {
  it.each<[string, Mutant]>([
    [
      'counts validity from the answer to its request',
      {
        file: 'hold.ts',
        line: 'this.#confirm(grant.from ?? sent, ',
        becomes: 'this.#confirm(grant.from ?? this.#grantedAt, ',
      },
    ],
    [
      'counts a renewal from its answer',
      {
        file: 'hold.ts',
        line: `    this.#confirm(renewal.from ?? sent, renewal.validFor ?? renewal.ttl);
    // A hold without renewal`,
        becomes: `    this.#confirm(renewal.from ?? this.#engine.clock.now(), renewal.validFor ?? renewal.ttl);
    // A hold without renewal`,
      },
    ],
    [
      'believes a renewal that was sent before an extension',
      { file: 'hold.ts', line: 'if (generation !== this.#generation) return;', becomes: '' },
    ],
    [
      'waits for a timer to notice that its time is over',
      {
        file: 'hold.ts',
        line: "return this.#state === 'held' && !this.#overdue();",
        becomes: "return this.#state === 'held';",
      },
    ],
    [
      'takes no margin from what the server grants',
      { file: 'validity.ts', line: 'return ms * 0.01 + 2;', becomes: 'return 0 * ms;' },
    ],
    [
      'forgets the claim that it gave up',
      {
        file: 'acquisition.ts',
        line: 'if (this.#mayLeaveTraces) this.#engine.giveBack(this.#claim);',
        becomes: '',
        scope: CALM,
      },
    ],
    [
      'brings a lost hold back when a renewal is answered',
      {
        file: 'hold.ts',
        line: `    if (this.#state !== 'held') return;
    if (renewal.renewed === 'unknown') {`,
        becomes: `    if (this.#state === 'lost' && renewal.renewed === true) this.#state = 'held';
    if (renewal.renewed === 'unknown') {`,
        scope: { ...CALM, faults: true, force: true },
      },
    ],
  ])('%s', { timeout: 120_000 }, async (_, mutant) => {
    const { play } = await bred(mutant);
    const details = await fc.check(
      fc.asyncProperty(story(mutant.scope ?? STORMY), (told) => play(told)),
      { numRuns: 2000, endOnFailure: true, seed: SEED },
    );
    expect(details.failed).toBe(true);
  });
});
