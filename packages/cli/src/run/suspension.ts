import type { CommandGroup } from './group.js';

/**
 * Ctrl-Z at a terminal stops this process, not the command, which is in a session of its own. A command that went on
 * alone would outlive the lock that nobody renews: so both stop, and go on together.
 *
 * Made before the command starts: a signal that came between its start and the first listener would stop this process
 * alone, or, where nobody could ever continue it (an orphaned process group), nothing at all.
 */
export class Suspension {
  #group: CommandGroup | undefined;

  readonly #stop = (): void => {
    this.#group?.signal('SIGSTOP');
    process.kill(process.pid, 'SIGSTOP');
  };

  readonly #goOn = (): void => this.#group?.signal('SIGCONT');

  constructor() {
    process.on('SIGTSTP', this.#stop);
    process.on('SIGCONT', this.#goOn);
  }

  /** From now on the group stops and goes on with this process. */
  follow(group: CommandGroup): void {
    this.#group = group;
  }

  dispose(): void {
    process.off('SIGTSTP', this.#stop);
    process.off('SIGCONT', this.#goOn);
  }
}
