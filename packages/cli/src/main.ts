#!/usr/bin/env node
import { main } from './program.js';

const args = process.argv.slice(2);
// The arguments may hold a URL with a password: nobody shall read it in a list of processes.
process.title = 'holdfast';
main(args).then(
  (code) => {
    process.exitCode ??= code;
  },
  (error: unknown) => {
    console.error(error);
    process.exitCode = 70;
  },
);
