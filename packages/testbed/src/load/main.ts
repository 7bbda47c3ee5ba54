/** `pnpm load`: loads on the backends, and what must be true after them. */
import { randomInt } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@holdfast/core';
import { Command, InvalidArgumentError } from 'commander';
import { mutantModules } from '../chaos/mutants/mutant.js';
import type { ChaosTarget } from '../chaos/target.js';
import { TARGETS } from '../chaos/targets/all.js';
import { Random } from '../random/random.js';
import { baseline } from './baseline.js';
import { crowd } from './crowd.js';
import { lostConnections } from './lost-connections.js';
import { restart } from './restart.js';
import type { Findings, Scenario, Scene } from './scenario.js';

const SCENARIOS: readonly Scenario[] = [baseline, crowd, restart, lostConnections];

/** As many as the busiest scenario has proxies for. */
const WORKERS = 10;

interface Options {
  readonly backend?: string[];
  readonly scenario?: string[];
  readonly count?: number;
  readonly seed: number;
  readonly mutant?: string;
  readonly list?: boolean;
  readonly json?: string;
}

/** A load on a backend, as `--json` writes it. */
interface LoadRun extends Findings {
  readonly backend: string;
  readonly scenario: string;
  readonly count: number;
  readonly seed: number;
  readonly seconds: number;
}

const program = new Command('load')
  .description('Puts load on the backends, and looks at what it leaves.')
  .option('--backend <id...>', 'only these backends (default: all)')
  .option('--scenario <id...>', 'only these (default: all that make sense)')
  .option('--count <number>', 'how much (default: as the scenario says)', number)
  .option('--seed <number>', 'repeats the choices of a run', number, randomInt(2 ** 31))
  .option('--mutant <name>', 'spoils the backend in this process: a file of src/chaos/mutants')
  .option('--json <file>', 'writes what came of it there')
  .option('--list', 'lists backends and scenarios');

// Locks that are held keep no process alive, and there are moments in which there is nothing else.
const alive = setInterval(() => undefined, 2 ** 30);
process.exitCode = await main(program.parse().opts<Options>());
clearInterval(alive);

async function main({ backend, scenario, count, seed, mutant, list, json }: Options): Promise<number> {
  const targets = chosen('backend', backend, TARGETS);
  const scenarios = chosen('scenario', scenario, SCENARIOS);
  if (list === true) {
    for (const { id, description } of [...targets, ...scenarios])
      console.log(`${id.padEnd(20)} ${description}`);
    return 0;
  }
  console.log(`seed ${seed}`);
  const runs: LoadRun[] = [];
  for (const target of targets) {
    for (const each of scenarios) {
      const reason = each.notFor?.(target);
      if (reason !== undefined) {
        console.log(`${target.id} × ${each.id}: does not apply: ${reason}`);
        continue;
      }
      const random = new Random(seed).fork(`${target.id} ${each.id}`);
      const started = performance.now();
      const size = count ?? each.count;
      const { figures, faults } = await play(target, each, { count: size, random, mutant });
      const seconds = Math.round((performance.now() - started) / 100) / 10;
      runs.push({ backend: target.id, scenario: each.id, count: size, seed, seconds, figures, faults });
      const told = Object.entries(figures).map(([what, value]) => `${what} ${value}`);
      console.log(`${target.id} × ${each.id}: ${faults.length === 0 ? 'pass' : 'fail'} (${told.join(', ')})`);
      for (const fault of faults.slice(0, 10)) console.log(`  ${fault}`);
      if (faults.length > 10) console.log(`  and ${faults.length - 10} more`);
    }
  }
  if (json !== undefined) await writeFile(json, `${JSON.stringify(runs, null, 2)}\n`);
  return runs.every(({ faults }) => faults.length === 0) ? 0 : 1;
}

async function play(
  target: ChaosTarget,
  scenario: Scenario,
  { count, random, mutant }: Pick<Scene, 'count' | 'random'> & { readonly mutant: string | undefined },
): Promise<Findings> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-load-'));
  try {
    const running = await target.start({ folder, workers: WORKERS });
    try {
      const open = async (worker: number) => {
        const url = running.url(worker);
        if (mutant === undefined) return connect(url);
        const module = new URL(`../chaos/mutants/${mutant}.js`, import.meta.url).href;
        return connect(url, { backends: await mutantModules(url, module) });
      };
      return await scenario.play({ target, running, open, count, random });
    } finally {
      await running.stop();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function chosen<T extends { readonly id: string }>(
  what: string,
  ids: readonly string[] | undefined,
  all: readonly T[],
): readonly T[] {
  const unknown = ids?.find((id) => !all.some((one) => one.id === id));
  if (unknown !== undefined)
    program.error(`there is no ${what} ${unknown}: one of ${all.map(({ id }) => id).join(', ')}`);
  return all.filter(({ id }) => ids?.includes(id) ?? true);
}

function number(text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0) throw new InvalidArgumentError('Not a number.');
  return value;
}
