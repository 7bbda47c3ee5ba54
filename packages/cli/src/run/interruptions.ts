/** The signals that are the command's, and end the waiting for it. */
export const FORWARDED = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const;

/**
 * Listens to the signals from the beginning to the end of a run, so that none of them, whenever it comes, ends this
 * process while a lock is held or a command runs. What a signal does depends on the moment: `handle` is told.
 */
export class Interruptions {
  /** The first signal that came, if any. */
  first: NodeJS.Signals | undefined;
  #handler: (signal: NodeJS.Signals) => void = () => undefined;
  readonly #listener = (signal: NodeJS.Signals): void => {
    this.first ??= signal;
    this.#handler(signal);
  };

  constructor() {
    for (const signal of FORWARDED) process.on(signal, this.#listener);
  }

  /** From now on signals go here. */
  handle(handler: (signal: NodeJS.Signals) => void): void {
    this.#handler = handler;
  }

  dispose(): void {
    for (const signal of FORWARDED) process.off(signal, this.#listener);
  }
}
