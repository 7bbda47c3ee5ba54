import { type Locks, systemClock, type Timer } from '@holdfast/core';
import type { StatusLine } from '../output.js';
import { fit, printable, quoted, span } from '../text.js';

const PERIOD = 1000;

/** Shows the place in the queue and who holds the lock, in a terminal's status line. */
export class Progress {
  readonly #locks: Locks;
  readonly #name: string;
  readonly #line: StatusLine;
  readonly #started = systemClock.now();
  readonly #unsubscribe: () => void;
  #owner: string | undefined;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(locks: Locks, name: string, line: StatusLine) {
    this.#locks = locks;
    this.#name = name;
    this.#line = line;
    this.#unsubscribe = locks.on('waiting', (event) => {
      this.#owner = event.owner;
      this.#show(event.position, event.holder);
      this.#arm();
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#unsubscribe();
    this.#timer?.cancel();
    this.#line.wipe();
  }

  #arm(): void {
    this.#timer = systemClock.setTimer(PERIOD, () => void this.#refresh());
  }

  async #refresh(): Promise<void> {
    try {
      const { owner, waiters } = await this.#locks.inspect(this.#name);
      if (this.#stopped) return;
      this.#show(waiters.find((waiter) => waiter.owner === this.#owner)?.position, owner);
    } catch {
      // The acquisition itself reports a backend that cannot be reached; this line only goes without news.
    }
    if (!this.#stopped) this.#arm();
  }

  #show(position: number | undefined, holder: string | undefined): void {
    const facts = [
      ...(position === undefined ? [] : [`place ${position}`]),
      ...(holder === undefined ? [] : [`held by ${printable(holder)}`]),
    ];
    const since = span(systemClock.now() - this.#started);
    // A long name must not push out of sight what changes.
    const name = fit(quoted(this.#name), Math.floor(this.#line.width / 3));
    this.#line.show(`waiting for ${name} (${since}): ${facts.join(', ')}`);
  }
}
