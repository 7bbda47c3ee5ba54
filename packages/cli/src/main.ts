#!/usr/bin/env node
import { standardOutput } from './output.js';
import { main } from './program.js';
import { printable } from './text.js';

const args = process.argv.slice(2);
// The arguments may hold a URL with a password: nobody shall read it in a list of processes.
process.title = 'holdfast';

// Node would open its debugger, to everybody on this machine: `run` passes the signal on, nothing else has a use for it.
process.on('SIGUSR1', () => undefined);

const output = standardOutput();
// Node's own form speaks to developers: a process id, and an option for stack traces. Silenced warnings stay silent.
if (process.listenerCount('warning') > 0) {
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => {
    output.err(`holdfast: ${name === 'HoldfastWarning' ? '' : `${name}: `}${printable(message)}`);
  });
}

main(args, output).then(
  (code) => {
    process.exitCode ??= code;
  },
  (error: unknown) => {
    console.error(error);
    process.exitCode = 70;
  },
);
