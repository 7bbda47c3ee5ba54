/** The signals that end the command, or the waiting for it. */
const ENDING = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const;

/**
 * The signals that have a meaning for the command alone, which may go on. By themselves, the first would open Node's
 * debugger to everybody on this machine, and the second would end this process.
 */
const TELLING = ['SIGUSR1', 'SIGUSR2'] as const;

/**
 * Listens to the signals from the beginning to the end of a run, so that none of them, whenever it comes, ends this
 * process while a lock is held or a command runs. What a signal does depends on the moment: `handle` is told.
 */
export class Interruptions {
  /** The first signal that came to end it, if any. */
  first: NodeJS.Signals | undefined;
  #end: (signal: NodeJS.Signals) => void = nothing;
  #tell: (signal: NodeJS.Signals) => void = nothing;
  readonly #onEnding = (signal: NodeJS.Signals): void => {
    this.first ??= signal;
    this.#end(signal);
  };
  readonly #onTelling = (signal: NodeJS.Signals): void => this.#tell(signal);

  constructor() {
    for (const signal of ENDING) process.on(signal, this.#onEnding);
    for (const signal of TELLING) process.on(signal, this.#onTelling);
  }

  /** From now on the signals that end go to `end`, and those that only tell something to `tell`. */
  handle(end: (signal: NodeJS.Signals) => void, tell: (signal: NodeJS.Signals) => void = nothing): void {
    this.#end = end;
    this.#tell = tell;
  }

  dispose(): void {
    for (const signal of ENDING) process.off(signal, this.#onEnding);
    for (const signal of TELLING) process.off(signal, this.#onTelling);
  }
}

function nothing(): void {
  // Between the moments in which a signal means something.
}
