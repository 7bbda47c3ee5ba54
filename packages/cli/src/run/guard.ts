import { spawn } from 'node:child_process';

/**
 * Reads the group's id, then waits. A further line means that all ended well; the end of input alone means that the
 * program was killed: then it ends the group, with a while to do so in peace.
 */
const SCRIPT = `
read -r group || exit 0
read -r word && exit 0
kill -s TERM -- "-$group" || exit 0
kill -s CONT -- "-$group"
left=$1
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
  readonly #input: NodeJS.WritableStream;

  /** @param grace ms between TERM and KILL */
  constructor(grace: number) {
    const tenths = String(Math.max(1, Math.ceil(grace / 100)));
    // Its own session: a Ctrl-C at the terminal must not reach it.
    const guard = spawn('/bin/sh', ['-c', SCRIPT, 'holdfast-guard', tenths], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    // Without a shell, or with the guard killed, the command goes on unguarded: the lock's ttl remains.
    guard.on('error', () => undefined);
    guard.stdin.on('error', () => undefined);
    guard.unref();
    this.#input = guard.stdin;
  }

  watch(group: number): void {
    this.#input.write(`${group}\n`);
  }

  dismiss(): void {
    this.#input.end('done\n');
  }
}
