import type { AcquireOptions, LockHandle, Locks } from '@holdfast/core';
import { type ConnectionFlags, openLocks } from '../connection.js';
import { codeOfError, codeOfSignal, EXIT, messageOf } from '../exit.js';
import type { Output } from '../output.js';
import { printable, quoted } from '../text.js';
import { type CommandEnd, CommandGroup } from './group.js';
import { Guard } from './guard.js';
import { Interruptions } from './interruptions.js';
import { Progress } from './progress.js';
import { Reporter, type Style } from './reporter.js';
import { Suspension } from './suspension.js';

/** What to run under which lock, every argument checked for its form. */
export interface RunRequest extends ConnectionFlags {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  /** One attempt: exit 75 if the lock is busy. */
  readonly once: boolean;
  readonly options: AcquireOptions;
  /** ms between TERM and KILL when the lock was lost. */
  readonly killAfter: number;
  readonly style: Style;
}

/**
 * Runs a command under a lock.
 *
 * A signal that comes while waiting ends the waiting; while the command runs it goes to the command's group. Between
 * the grant and the start of the command nothing is awaited, so no signal falls in between and leaves an orphan.
 *
 * @returns the exit code
 */
export async function runUnderLock(request: RunRequest, output: Output): Promise<number> {
  const interruptions = new Interruptions();
  const reporter = new Reporter(output, request.style);
  try {
    // Nothing is held yet, and the connection is worth nothing to anybody.
    interruptions.handle((signal) => process.exit(codeOfSignal(signal)));
    const locks = await openLocks(request);
    reporter.follow(locks);
    try {
      return await new Run(request, locks, reporter, interruptions).code();
    } finally {
      await locks.close();
    }
  } catch (error) {
    reporter.failed('failed', request.name, messageOf(error));
    return codeOfError(error);
  } finally {
    interruptions.dispose();
  }
}

class Run {
  readonly #request: RunRequest;
  readonly #locks: Locks;
  readonly #reporter: Reporter;
  readonly #interruptions: Interruptions;

  constructor(request: RunRequest, locks: Locks, reporter: Reporter, interruptions: Interruptions) {
    this.#request = request;
    this.#locks = locks;
    this.#reporter = reporter;
    this.#interruptions = interruptions;
  }

  async code(): Promise<number> {
    // Started while nobody waits for us: between the grant and the command every moment counts.
    const guard = new Guard();
    try {
      return await this.#guarded(guard);
    } finally {
      guard.dismiss();
    }
  }

  async #guarded(guard: Guard): Promise<number> {
    const { name } = this.#request;
    const hold = await this.#acquire();
    if (hold === 'interrupted') return codeOfSignal(this.#interruptions.first ?? 'SIGTERM');
    if (hold === null) {
      this.#reporter.failed('busy', name, `lock ${quoted(name)} is busy`);
      return EXIT.busy;
    }
    if (!hold.isHeld()) {
      // This process stood still since the grant: others may be in by now.
      await this.#release(hold);
      this.#reporter.failed('lost', name, `lock ${quoted(name)} was lost before the command could start`);
      return EXIT.lost;
    }
    const end = await this.#work(hold, guard);
    const wasLost = hold.signal.aborted;
    this.#reporter.ended(name, end);
    const released = await this.#release(hold);
    if (wasLost || released === false) {
      const { reason } = hold.signal as { readonly reason?: Error };
      const message = reason?.message ?? `lock ${quoted(name)} had gone before the command ended`;
      this.#reporter.failed('lost', name, message);
      return EXIT.lost;
    }
    return this.#codeOf(end);
  }

  async #acquire(): Promise<LockHandle | null | 'interrupted'> {
    const { name, once, options } = this.#request;
    const { status } = this.#reporter;
    const waiting = new AbortController();
    this.#interruptions.handle(() => waiting.abort());
    const lock = this.#locks.lock(name);
    const progress = status === undefined ? undefined : new Progress(this.#locks, name, status);
    try {
      const hold = once
        ? await lock.tryAcquire({ ...options, signal: waiting.signal })
        : await lock.acquire({ ...options, signal: waiting.signal });
      if (!waiting.signal.aborted || hold === null) return hold;
      // The signal came with the grant.
      await this.#release(hold);
      return 'interrupted';
    } catch (error) {
      if (waiting.signal.aborted) return 'interrupted';
      throw error;
    } finally {
      progress?.stop();
    }
  }

  /** Runs the command; resolves when it and everything that it started have gone. */
  async #work(hold: LockHandle, guard: Guard): Promise<CommandEnd> {
    const { name, command, killAfter } = this.#request;
    const [program, ...args] = command;
    const suspension = new Suspension();
    const group = new CommandGroup(program, args, {
      ...process.env,
      HOLDFAST_LOCK: name,
      HOLDFAST_FENCING_TOKEN: String(hold.fencingToken),
      HOLDFAST_OWNER: hold.owner,
    });
    suspension.follow(group);
    const forward = (signal: NodeJS.Signals): void => {
      group.signal(signal);
      // A shell's background jobs ignore INT and QUIT: they outlive the command that was told to end.
      void group.commandEnded.then(() => group.terminate(killAfter));
    };
    const lost = (): void => group.terminate(killAfter);
    this.#interruptions.handle(forward, (signal) => group.tell(signal));
    hold.signal.addEventListener('abort', lost, { once: true });
    if (hold.signal.aborted) lost();
    if (group.id !== undefined) {
      // KILL comes before a lock that nobody renews any more is free for others: not the ttl says when that is, but what
      // the backend guarantees, which is less where a session ends before.
      guard.watch(group.id, Math.min(killAfter, hold.remaining() / 2));
      this.#reporter.started(name, group.id);
    }
    const end = await group.ended;
    guard.dismiss();
    this.#interruptions.handle(() => undefined);
    hold.signal.removeEventListener('abort', lost);
    suspension.dispose();
    return end;
  }

  /** Undefined where the outcome stays unknown: the command's end counts then, and the ttl frees the name. */
  async #release(hold: LockHandle): Promise<boolean | undefined> {
    try {
      return await hold.release();
    } catch (error) {
      const message = `lock ${quoted(hold.name)} could not be given back: ${(error as Error).message}`;
      this.#reporter.failed('unreleased', hold.name, message);
      return undefined;
    }
  }

  #codeOf(end: CommandEnd): number {
    switch (end.kind) {
      case 'exited':
        return end.code;
      case 'signalled':
        return codeOfSignal(end.signal);
      case 'unstartable': {
        const { code, message } = end.error;
        const [program] = this.#request.command;
        const why = code === 'ENOENT' ? 'command not found' : message;
        this.#reporter.failed('unstartable', this.#request.name, `${printable(program)}: ${why}`);
        return code === 'ENOENT' ? EXIT.notFound : EXIT.notExecutable;
      }
    }
  }
}
