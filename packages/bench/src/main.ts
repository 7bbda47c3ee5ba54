#!/usr/bin/env node
import { writeFileSync } from 'node:fs';
import { cpus, platform, release } from 'node:os';
import { Command } from 'commander';
import { type Effort, measure } from './measure.js';
import { type Figure, type Results, table } from './results.js';
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

const program = new Command('bench')
  .description('Measures this project, the raw calls and the peers on one machine in one run.')
  .argument('[backends...]', `any of ${ALL.join(', ')}; default all`)
  .option('--quick', 'one short round each: to see that everything runs')
  .option('--rounds <n>', 'rounds that count', '3')
  .option('--ms <n>', 'length of one measurement', '3000')
  .option('--waiters <n>', 'waiters under contention, over five processes', '50')
  .option('--json <file>', 'writes the figures to a file')
  .parse();

const options = program.opts<{
  quick?: boolean;
  rounds: string;
  ms: string;
  waiters: string;
  json?: string;
}>();
const backends = (program.args.length > 0 ? program.args : ALL) as Backend[];
const effort: Effort = {
  rounds: options.quick ? 1 : Number(options.rounds),
  ms: options.quick ? 500 : Number(options.ms),
  waiters: Number(options.waiters),
  processes: 5,
};

const figures: Figure[] = [];
const results = (): Results => ({
  at: new Date().toISOString(),
  machine: {
    node: process.version,
    cpus: cpus().length,
    model: cpus()[0]?.model ?? '',
    platform: `${platform()} ${release()}`,
  },
  figures,
});
for (const backend of backends) {
  figures.push(...(await measure(backend, effort, (line) => console.error(line))));
  console.log(`\n${table(results(), backend)}\n`);
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(results(), null, 2)}\n`);
}
