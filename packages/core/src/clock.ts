import { uptime } from '#platform';

/** A timer that can be taken back. */
export interface Timer {
  /** Takes the timer back; harmless when it has fired or was cancelled before. */
  cancel(): void;
  /** From now on the timer keeps the process alive, or does not. A clock whose timers never do can leave it out. */
  keepAlive?(keep: boolean): void;
}

/**
 * The only source of time. Core and the backends read every clock and set every timer through it, so that
 * tests and simulations can drive them.
 */
export interface Clock {
  /** Milliseconds on a monotonic clock with an arbitrary origin. It may stand still while the machine is suspended. */
  now(): number;
  /** Milliseconds since the epoch on the wall clock, which may jump. */
  wall(): number;
  /** Milliseconds on a clock that counts suspension too (the machine's time since boot). */
  uptime(): number;
  /**
   * Calls `callback` once, after `delay` milliseconds, which may exceed 2^31 − 1. An infinite delay never fires.
   * The timer keeps the process alive only with `keepAlive`.
   */
  setTimer(delay: number, callback: () => void, options?: { readonly keepAlive?: boolean }): Timer;
}

const LONGEST = 2 ** 31 - 1;

/** The machine's clocks and Node's timers. */
export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  uptime: () => uptime(),
  setTimer(delay, callback, options) {
    return new SystemTimer(delay, callback, options?.keepAlive === true);
  },
};

class SystemTimer implements Timer {
  #handle: ReturnType<typeof setTimeout> | undefined;
  #keepAlive: boolean;

  constructor(delay: number, callback: () => void, keepAlive: boolean) {
    this.#keepAlive = keepAlive;
    this.#arm(performance.now() + delay, delay, callback);
  }

  /** A delay above 2^31 − 1 is walked in steps: Node would make it 1 ms. */
  #arm(due: number, delay: number, callback: () => void): void {
    const step = Math.min(delay, LONGEST);
    const fire = step < delay ? () => this.#arm(due, due - performance.now(), callback) : callback;
    this.#handle = setTimeout(fire, step);
    // Browsers return a number, which keeps nothing alive.
    if (!this.#keepAlive && typeof this.#handle === 'object') this.#handle.unref();
  }

  cancel(): void {
    clearTimeout(this.#handle);
    this.#handle = undefined;
  }

  keepAlive(keep: boolean): void {
    this.#keepAlive = keep;
    if (typeof this.#handle !== 'object') return;
    if (keep) this.#handle.ref();
    else this.#handle.unref();
  }
}

/** Resolves after `ms` milliseconds, or at once when `signal` aborts; it never rejects. */
export function sleep(
  clock: Clock,
  ms: number,
  signal?: AbortSignal,
  options?: { readonly keepAlive?: boolean },
): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = (): void => {
      timer.cancel();
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = clock.setTimer(ms, done, options);
    signal?.addEventListener('abort', done, { once: true });
  });
}
