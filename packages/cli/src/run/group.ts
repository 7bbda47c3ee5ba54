import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { sleep, systemClock, type Timer } from '@holdfast/core';

/** How a command ended. */
export type CommandEnd =
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'signalled'; readonly signal: NodeJS.Signals }
  | { readonly kind: 'unstartable'; readonly error: NodeJS.ErrnoException };

/**
 * A command in a process group of its own, with everything that it starts. The group is what gets the signals, and
 * what must have gone before the lock is given back: a shell that ends may leave its children working.
 */
export class CommandGroup {
  /** Resolves when the command itself has ended; what it started may still run. Never rejects. */
  readonly commandEnded: Promise<CommandEnd>;
  /** Resolves, with the same, once every process of the group has gone. Never rejects. */
  readonly ended: Promise<CommandEnd>;
  readonly #child: ChildProcess;
  #kill: Timer | undefined;

  /** Starts the command; it has the terminal's or the pipe's input and output. */
  constructor(command: string, args: readonly string[], environment: NodeJS.ProcessEnv) {
    // `detached` makes a new session, so the command is the leader of a group by its own process id.
    this.#child = spawn(command, args, { detached: true, stdio: 'inherit', env: environment });
    this.commandEnded = new Promise((resolve) => {
      this.#child.once('error', (error) => resolve({ kind: 'unstartable', error }));
      this.#child.once('exit', (code, signal) => {
        resolve(signal === null ? { kind: 'exited', code: code ?? 0 } : { kind: 'signalled', signal });
      });
    });
    this.ended = this.#allEnded();
  }

  /** The group's id, undefined if the command could not be started. */
  get id(): number | undefined {
    return this.#child.pid;
  }

  /** Sends a signal to every process of the group; nothing happens if it has gone. */
  signal(signal: NodeJS.Signals): void {
    if (this.id === undefined) return;
    try {
      process.kill(-this.id, signal);
    } catch {
      // It has gone, or it is another user's by now (sudo): then the signal is not ours to send.
    }
  }

  /** Sends a signal to the command alone: what it started may not expect it, and would be ended by it. */
  tell(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Ends the group: TERM, and KILL after `grace` ms for what is still there. */
  terminate(grace: number): void {
    if (this.#kill !== undefined) return;
    this.signal('SIGTERM');
    // What is stopped has to go on to hear of it.
    this.signal('SIGCONT');
    this.#kill = systemClock.setTimer(grace, () => this.signal('SIGKILL'), { keepAlive: true });
  }

  async #allEnded(): Promise<CommandEnd> {
    const end = await this.commandEnded;
    const { id } = this;
    // No event tells that a group is empty.
    for (let pause = 5; id !== undefined && groupIsAlive(id); pause = Math.min(pause * 2, 250)) {
      await sleep(systemClock, pause, undefined, { keepAlive: true });
    }
    this.#kill?.cancel();
    return end;
  }
}

/** True while a process of the group still runs. A zombie does not: nobody may ever collect it in a container. */
export function groupIsAlive(id: number): boolean {
  try {
    process.kill(-id, 0);
  } catch (error) {
    // Macs answer EPERM for a group of zombies alone; elsewhere it means processes of another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM' && process.platform !== 'darwin';
  }
  return process.platform !== 'linux' || hasRunningMember(id);
}

/** Looks through /proc; where it shows no member at all (hidden ones), the answer of kill(2) stands. */
function hasRunningMember(group: number): boolean {
  let zombies = 0;
  for (const entry of readdirSync('/proc')) {
    const member = /^\d+$/.test(entry) ? statOf(entry) : undefined;
    if (member?.group !== group) continue;
    if (member.state !== 'Z' && member.state !== 'X') return true;
    zombies++;
  }
  return zombies === 0;
}

function statOf(pid: string): { readonly state: string; readonly group: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The command's name, in parentheses, may hold anything: the fields start after the last one.
    const [state = '', , group] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { state, group: Number(group) };
  } catch {
    return undefined;
  }
}
