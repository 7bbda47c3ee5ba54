import { spawn } from 'node:child_process';
import type { Writable } from 'node:stream';

/**
 * Reads the group's id and its grace in tenths of a second, then waits. A further line means that all ended well; the
 * end of input alone means that the program was killed: then it ends the group, with that while to do so in peace.
 */
const SCRIPT = `
read -r group left || exit 0
[ "$left" ] || exit 0
read -r word && exit 0
kill -s TERM -- "-$group" || exit 0
kill -s CONT -- "-$group"
while [ "$left" -gt 0 ]; do
  kill -s 0 -- "-$group" || exit 0
  sleep 0.1
  left=$((left - 1))
done
kill -s KILL -- "-$group"
`;

/**
 * A small process beside the command, which ends the command's group if this process is killed with SIGKILL: nobody
 * would renew the lock or stop the command when it is lost.
 */
export class Guard {
  readonly #input: Writable;

  constructor() {
    // Its own session: a Ctrl-C at the terminal must not reach it.
    const guard = spawn('/bin/sh', ['-c', 'eval "$HOLDFAST_GUARD"', 'holdfast-guard'], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
      // A list of processes shall show one line, not the script; and no secret is left in a process that lives on.
      env: { PATH: process.env.PATH, HOLDFAST_GUARD: SCRIPT },
    });
    // Without a shell, or with the guard killed, the command goes on unguarded: the lock's ttl remains.
    guard.on('error', () => undefined);
    guard.stdin.on('error', () => undefined);
    guard.unref();
    this.#input = guard.stdin;
  }

  /** From now on the group ends with this process; between TERM and KILL it has `grace` ms. */
  watch(group: number, grace: number): void {
    this.#input.write(`${group} ${Math.floor(grace / 100)}\n`);
  }

  /** The group has gone by itself, or never was. */
  dismiss(): void {
    if (!this.#input.writableEnded) this.#input.end('done\n');
  }
}
