#!/usr/bin/env node
import { Argument, Command } from 'commander';
import { TOPOLOGIES, type Topology } from './data.js';
import { generate } from './generate.js';
import { recordBench, recordCapabilities, recordChaos, recordConformance, recordLoad } from './record.js';

const program = new Command('docs').description('Keeps the pages that follow from code and measurements.');

program
  .command('generate')
  .description('writes the generated parts of docs/comparison.md and docs/reliability.md anew')
  .action(generate);

const record = program
  .command('record')
  .description('puts results into docs/data, and writes the pages anew');
record
  .command('capabilities')
  .description('starts servers, asks each what it declares')
  .addArgument(new Argument('[topologies...]', 'default: all').choices(TOPOLOGIES))
  .action(async (topologies: Topology[]) => {
    await recordCapabilities(topologies.length > 0 ? topologies : TOPOLOGIES, console.error);
    generate();
  });
record
  .command('conformance')
  .description('from reports of vitest --reporter=json')
  .argument('<files...>')
  .action((files: string[]) => {
    recordConformance(files);
    generate();
  });
record
  .command('chaos')
  .description('from reports of pnpm chaos --json')
  .argument('<files...>')
  .action((files: string[]) => {
    recordChaos(files);
    generate();
  });
record
  .command('load')
  .description('from reports of pnpm load --json')
  .argument('<files...>')
  .action((files: string[]) => {
    recordLoad(files);
    generate();
  });
record
  .command('bench')
  .description('from files of pnpm bench --json')
  .argument('<files...>')
  .action((files: string[]) => {
    recordBench(files);
    generate();
  });

await program.parseAsync();
