import { randomInt } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { drawTimeline } from '../picture/timeline.js';
import { Random } from '../random/random.js';
import { noNamespaces } from '../servers/namespaces.js';
import { type CaseResult, runCase } from './case.js';
import { matrixOf } from './matrix.js';
import { faultsOf } from './process-faults.js';
import { markdownTable, type ReportRow, rowOf } from './report.js';
import type { ChaosFault, ChaosTarget } from './target.js';
import { TARGETS } from './targets/all.js';

interface Options {
  readonly backend?: string[];
  readonly fault?: string[];
  readonly seed: number;
  readonly minutes: number;
  readonly rounds?: number;
  readonly short?: boolean;
  readonly json?: string;
  readonly svg?: string;
  readonly mutant?: string;
  readonly keep?: boolean;
  readonly list?: boolean;
}

interface Cell {
  readonly target: ChaosTarget;
  readonly fault: ChaosFault;
}

/** How many violations, doubts and troubles of a case are printed. */
const PRINTED = 8;
/** And how much of each. */
const LINE = 300;

const program = new Command('chaos')
  .description('Puts the backends under faults and judges what their holders saw.')
  .option('--backend <id...>', 'only these backends (default: all)')
  .option('--fault <id...>', 'only these faults (default: all that a backend has)')
  .option('--seed <number>', 'repeats the choices of a run', number, randomInt(2 ** 31))
  .option('--minutes <number>', 'time for the whole matrix, shared by its cases', number, 0)
  .option('--rounds <number>', 'injections in each case, at least (default: 3; with --short 1)', number)
  .option('--short', 'one fault of each backend, drawn by the seed: some minutes for all of them')
  .option('--json <file>', 'writes the table and the violations there')
  .option('--svg <file>', 'draws who held what when there (with several cases: one file each)')
  .option('--mutant <name>', 'spoils the backend in the workers: a file of src/chaos/mutants')
  .option('--keep', 'keeps the histories of all cases; those of failed ones are kept anyway')
  .option('--list', 'lists backends and faults');

process.exitCode = await main(program.parse().opts<Options>());

async function main(options: Options): Promise<number> {
  if (options.list === true) {
    list();
    return 0;
  }
  const cells = options.short === true ? drawn(choose(options), options.seed) : choose(options);
  const mutant =
    options.mutant === undefined
      ? undefined
      : new URL(`./mutants/${options.mutant}.js`, import.meta.url).href;
  const time = (options.minutes * 60_000) / cells.length;
  console.log(`seed ${options.seed}, ${cells.length} cases`);
  const rows: ReportRow[] = [];
  const details: unknown[] = [];
  for (const { target, fault } of cells) {
    // A case chooses the same, alone or in the matrix.
    const random = new Random(options.seed).fork(`${target.id} ${fault.id}`);
    const rounds = roundsOf(options);
    const result = await runCase({
      target,
      fault,
      random,
      rounds,
      time,
      ...(mutant === undefined ? {} : { mutant }),
    });
    const row = rowOf(result);
    rows.push(row);
    details.push({ ...row, found: found(result) });
    tell(result, row, options);
    if (options.svg !== undefined && result.story.holds.length > 0)
      await draw(result, options, cells.length > 1);
    if (result.verdict === 'pass' && options.keep !== true)
      await rm(result.folder, { recursive: true, force: true });
    else console.log(`  histories: ${join(result.folder, 'histories')}`);
  }
  console.log(`\n${markdownTable(rows)}`);
  if (options.json !== undefined) {
    const report = { seed: options.seed, mutant: options.mutant, cases: details };
    await writeFile(options.json, `${JSON.stringify(report, null, 2)}\n`);
  }
  const verdicts = rows.map(({ verdict }) => verdict);
  return verdicts.every((verdict) => verdict === 'pass') ? 0 : 1;
}

function choose({ backend, fault }: Options): readonly Cell[] {
  known(
    'backend',
    backend,
    TARGETS.map(({ id }) => id),
  );
  const targets = TARGETS.filter(({ id }) => backend?.includes(id) ?? true);
  known(
    'fault',
    fault,
    targets.flatMap((target) => faultsOf(target).map(({ id }) => id)),
  );
  const cells = targets.flatMap((target) =>
    faultsOf(target)
      .filter((candidate) => fault?.includes(candidate.id) ?? isPossible(target, candidate))
      .map((chosen) => ({ target, fault: chosen })),
  );
  if (cells.length === 0) {
    program.error('these backends have none of these faults; --list shows what there is');
  }
  return cells;
}

/** What this machine cannot do is said, and left out of what nobody named. */
function isPossible(target: ChaosTarget, { id, namespaces }: ChaosFault): boolean {
  const why = namespaces === true ? noNamespaces() : undefined;
  if (why !== undefined) console.log(`left out: ${target.id} × ${id}: ${why}`);
  return why === undefined;
}

/** For each backend one of its cells. */
function drawn(cells: readonly Cell[], seed: number): readonly Cell[] {
  const byTarget = new Map<ChaosTarget, [Cell, ...Cell[]]>();
  for (const cell of cells) {
    const others = byTarget.get(cell.target);
    if (others === undefined) byTarget.set(cell.target, [cell]);
    else others.push(cell);
  }
  return [...byTarget].map(([{ id }, choices]) => new Random(seed).fork(`short ${id}`).pick(choices));
}

function roundsOf({ rounds, short }: Options): number {
  return rounds ?? (short === true ? 1 : 3);
}

function known(what: string, given: readonly string[] | undefined, all: readonly string[]): void {
  const unknown = given?.find((id) => !all.includes(id));
  if (unknown !== undefined)
    program.error(`there is no ${what} ${unknown}: one of ${[...new Set(all)].join(', ')}`);
}

function list(): void {
  for (const target of TARGETS) {
    console.log(`${target.id}: ${target.description}`);
    for (const { id, description } of faultsOf(target)) console.log(`  ${id.padEnd(20)} ${description}`);
    for (const { kind, reason } of matrixOf(target)) {
      if (reason !== undefined) console.log(`  not applicable: ${kind} (${reason})`);
    }
  }
}

function found({ check, troubles }: CaseResult): string[] {
  return [
    ...troubles,
    ...check.violations.map(({ rule, kind, message }) => `${rule}/${kind}: ${message}`),
    ...check.doubts.map((doubt) => `not decided: ${doubt}`),
  ];
}

function tell(result: CaseResult, row: ReportRow, options: Options): void {
  const { backend, fault, verdict } = result;
  const recovery = `longest recovery ${row.longestRecovery} ms`;
  console.log(
    `${backend} × ${fault}: ${verdict} (${row.grants} grants, ${row.lost} lost, ${row.violations} violations, ${recovery})`,
  );
  if (verdict === 'pass') return;
  const lines = found(result);
  for (const line of lines.slice(0, PRINTED)) console.log(`  ${abridged(line)}`);
  if (lines.length > PRINTED) console.log(`  and ${lines.length - PRINTED} more`);
  console.log(`  repeat with: ${command(result, options)}`);
}

/** On one line; the JSON report has it whole. */
function abridged(text: string): string {
  const line = text.replace(/\s+/g, ' ');
  return line.length <= LINE ? line : `${line.slice(0, LINE)}…`;
}

function command({ backend, fault }: CaseResult, options: Options): string {
  const { seed, minutes, mutant } = options;
  const parts = [
    'pnpm chaos',
    `--backend ${backend}`,
    `--fault ${fault}`,
    `--seed ${seed}`,
    `--rounds ${roundsOf(options)}`,
  ];
  if (minutes > 0) parts.push(`--minutes ${minutes}`);
  if (mutant !== undefined) parts.push(`--mutant ${mutant}`);
  return parts.join(' ');
}

async function draw(result: CaseResult, options: Options, several: boolean): Promise<void> {
  const { backend, fault, story } = result;
  const file = options.svg ?? '';
  const name = several ? file.replace(/(\.svg)?$/, `-${backend}-${fault}.svg`) : file;
  const spoiled = options.mutant === undefined ? '' : ` (spoiled: ${options.mutant})`;
  const picture = drawTimeline(story, {
    title: `${backend}${spoiled} × ${fault}: ${result.verdict}`,
    subtitle: command(result, options),
  });
  await writeFile(name, picture);
  console.log(`  picture: ${name}`);
}

function number(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value) || value < 0)
    throw new InvalidArgumentError('Not a number.');
  return value;
}
