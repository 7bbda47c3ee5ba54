import { channel } from 'node:diagnostics_channel';
import { type Clock, sleep } from '@holdfast/core';
import type { LockStore } from './store.js';

/** Each sweep that removed something is published here as `{ product, removed }`. */
export const SWEPT_CHANNEL = 'holdfast:sql:swept';

/** One statement removes no more rows than this, so that nobody waits for it. */
const BATCH = 500;

export interface SweeperOptions {
  readonly product: string;
  /** ms between sweeps, on average. 0: never. */
  readonly every: number;
  /** ms that a free lock's row, and with it the fence, is kept. */
  readonly retention: number;
  readonly report: (error: Error) => void;
}

/** Removes rows that nobody needs. Any number may sweep at once: each statement checks again what it deletes. */
export class Sweeper {
  readonly #store: Pick<LockStore, 'sweep'>;
  readonly #clock: Clock;
  readonly #options: SweeperOptions;
  readonly #stop = new AbortController();
  readonly #swept = channel(SWEPT_CHANNEL);
  #running: Promise<void> = Promise.resolve();

  constructor(store: Pick<LockStore, 'sweep'>, clock: Clock, options: SweeperOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#options = options;
  }

  start(): void {
    if (this.#options.every > 0) this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    for (;;) {
      // Instances that started together do not sweep together.
      await sleep(this.#clock, this.#options.every * (0.5 + Math.random()), signal);
      if (signal.aborted) return;
      try {
        await this.#sweep(signal);
      } catch (error) {
        this.#options.report(error as Error);
      }
    }
  }

  async #sweep(signal: AbortSignal): Promise<void> {
    let removed = 0;
    for (let batch = BATCH; batch >= BATCH && !signal.aborted; ) {
      batch = await this.#store.sweep(this.#options.retention, BATCH);
      removed += batch;
      await sleep(this.#clock, 10 + 40 * Math.random(), signal);
    }
    if (removed > 0 && this.#swept.hasSubscribers) {
      this.#swept.publish({ product: this.#options.product, removed });
    }
  }
}
