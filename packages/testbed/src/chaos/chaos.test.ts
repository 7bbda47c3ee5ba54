import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ReportRow } from './report.js';

const PROGRAM = fileURLToPath(new URL('../../dist/chaos/main.js', import.meta.url));
const TIMEOUT = 240_000;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-chaos-test-'));
});
afterEach(() => rm(folder, { recursive: true }));

interface Outcome {
  readonly exitCode: number | undefined;
  readonly cases: readonly (ReportRow & { readonly found: readonly string[] })[];
  readonly output: string;
}

async function chaos(...args: string[]): Promise<Outcome> {
  const json = join(folder, 'report.json');
  const run = await execa('node', [PROGRAM, ...args, '--json', json], {
    reject: false,
    env: { TMPDIR: folder },
    all: true,
  });
  const { cases } = JSON.parse(await readFile(json, 'utf8')) as Pick<Outcome, 'cases'>;
  return { exitCode: run.exitCode, cases, output: run.all };
}

describe('chaos on SQLite', () => {
  test('with kill -9 and SIGSTOP breaks no promise', { timeout: TIMEOUT }, async () => {
    const { exitCode, cases, output } = await chaos(
      '--backend',
      'sqlite',
      '--fault',
      'kill9',
      'sigstop',
      '--seed',
      '5',
    );
    expect(
      cases.map(({ fault, verdict, found }) => ({ fault, verdict, found })),
      output,
    ).toEqual([
      { fault: 'kill9', verdict: 'pass', found: [] },
      { fault: 'sigstop', verdict: 'pass', found: [] },
    ]);
    expect(exitCode).toBe(0);
  });

  test.each([
    ['release-without-owner', 'exclusion/two-holders'],
    ['half-ttl', 'exclusion/two-holders'],
    ['unfenced', 'tokens/token-'],
    ['queue-jumper', 'fairness/overtaken'],
  ])('finds the mutant %s', { timeout: TIMEOUT }, async (mutant, expected) => {
    const args = [
      '--backend',
      'sqlite',
      '--fault',
      'sigstop',
      '--seed',
      '5',
      '--rounds',
      '4',
      '--mutant',
      mutant,
    ];
    const { exitCode, cases, output } = await chaos(...args);
    expect(cases.flatMap(({ found }) => found).join('\n'), output).toContain(expected);
    expect(exitCode).toBe(1);
    expect(output).toContain(
      `repeat with: pnpm chaos --backend sqlite --fault sigstop --seed 5 --rounds 4 --mutant ${mutant}`,
    );
  });
});

describe('chaos in one process', () => {
  test('breaks no promise of the memory backend', { timeout: TIMEOUT }, async () => {
    const { exitCode, cases, output } = await chaos('--backend', 'memory', '--seed', '5', '--rounds', '2');
    expect(
      cases.map(({ fault, verdict }) => `${fault} ${verdict}`),
      output,
    ).toEqual(['none pass', 'sigstop pass', 'blocked-loop pass']);
    expect(exitCode).toBe(0);
  });
});

describe('the short form', () => {
  test('plays one fault of each backend, once', { timeout: TIMEOUT }, async () => {
    const args = ['--short', '--backend', 'memory', 'sqlite', '--seed', '5'];
    const { exitCode, cases, output } = await chaos(...args);
    expect(
      cases.map(({ backend, injections, verdict }) => `${backend} ${injections} ${verdict}`),
      output,
    ).toEqual(['memory 1 pass', 'sqlite 1 pass']);
    expect(exitCode).toBe(0);
  });
});

describe('the program', () => {
  test.each([
    [['--backend', 'nosuch'], /there is no backend nosuch: one of .*sqlite/],
    [['--fault', 'nosuch'], /there is no fault nosuch: one of .*kill9/],
    [['--backend', 'memory', '--fault', 'kill9'], /there is no fault kill9/],
    [['--seed', 'x'], /Not a number/],
  ])('says what is wrong with %j', async (args, message) => {
    const { exitCode, stderr } = await execa('node', [PROGRAM, ...args], { reject: false });
    expect(stderr).toMatch(message);
    expect(exitCode).toBe(1);
  });
});
