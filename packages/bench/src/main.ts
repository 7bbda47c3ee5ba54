#!/usr/bin/env node
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, platform, release } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { measure } from './measure.js';
import { plot } from './plot.js';
import { type BackendResults, type Effort, readResults, table } from './results.js';
import type { Backend } from './subject.js';

const ALL: readonly Backend[] = [
  'memory',
  'sqlite',
  'redis',
  'redis-quorum',
  'etcd',
  'zookeeper',
  'postgres',
  'mariadb',
];
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const PUBLISHED = join(ROOT, 'docs/data/bench.json');
const SCRATCH = join(ROOT, '.holdfast/bench.json');

const program = new Command('bench')
  .description('Measures this project, the raw calls and the peers on one machine in one run.')
  .argument('[backends...]', `any of ${ALL.join(', ')}; default all`)
  .option('--quick', 'one short round each, to see that everything runs; kept out of the documentation')
  .option('--rounds <n>', 'rounds that count', '3')
  .option('--ms <n>', 'length of one measurement', '4000')
  .option('--waiters <n>', 'waiters under contention, over five processes', '50')
  .option('--only <names...>', 'only these subjects; kept out of the documentation')
  .option(
    '--json <file>',
    "where the figures go, in place of these backends' earlier ones (default: docs/data/bench.json)",
  )
  .option('--plots <folder>', 'where the plots go, light and dark (default: beside the figures)')
  .parse();

const options = program.opts<{
  quick?: boolean;
  rounds: string;
  ms: string;
  waiters: string;
  only?: string[];
  json?: string;
  plots?: string;
}>();
const backends = (program.args.length > 0 ? program.args : ALL) as Backend[];
const unknown = backends.find((backend) => !ALL.includes(backend));
if (unknown !== undefined) program.error(`there is no backend ${unknown}: one of ${ALL.join(', ')}`);

const effort: Effort = {
  rounds: options.quick ? 1 : Number(options.rounds),
  ms: options.quick ? 500 : Number(options.ms),
  waiters: Number(options.waiters),
  processes: 5,
};
const partial = options.quick === true || options.only !== undefined;
const file = options.json ?? (partial ? SCRATCH : PUBLISHED);
const plots = options.plots ?? join(dirname(file), 'plots');
mkdirSync(plots, { recursive: true });

for (const backend of backends) {
  const measured = await measure(backend, effort, (line) => console.error(line), options.only);
  const results: BackendResults = {
    at: new Date().toISOString(),
    machine: {
      node: process.version,
      cpus: cpus().length,
      model: cpus()[0]?.model ?? '',
      platform: `${platform()} ${release()}`,
    },
    effort,
    ...measured,
  };
  console.log(`\n${table(backend, results)}\n`);
  // Read again each time: another run may have written another backend meanwhile.
  writeFileSync(file, `${JSON.stringify({ ...readResults(file), [backend]: results }, null, 2)}\n`);
  for (const theme of ['light', 'dark'] as const)
    writeFileSync(join(plots, `${backend}-${theme}.svg`), plot(backend, results, theme));
}
