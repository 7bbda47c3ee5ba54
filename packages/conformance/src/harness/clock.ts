import { type Clock, systemClock, type Timer } from '@holdfast/core';

/**
 * The machine's clocks and timers, which a case may disturb, and a count of the timers that are set: after `close()`
 * there must be none.
 */
export class CaseClock implements Clock {
  readonly #timers = new Set<Timer>();
  readonly #idle = new Set<() => void>();
  #wallAhead = 0;
  #uptimeAhead = 0;

  now(): number {
    return systemClock.now();
  }

  wall(): number {
    return systemClock.wall() + this.#wallAhead;
  }

  uptime(): number {
    return systemClock.uptime() + this.#uptimeAhead;
  }

  setTimer(delay: number, callback: () => void, options?: { readonly keepAlive?: boolean }): Timer {
    const fire = (): void => {
      this.#forget(timer);
      callback();
    };
    const inner = systemClock.setTimer(delay, fire, options);
    const timer: Timer = {
      cancel: () => {
        inner.cancel();
        this.#forget(timer);
      },
    };
    this.#timers.add(timer);
    return timer;
  }

  #forget(timer: Timer): void {
    this.#timers.delete(timer);
    if (this.#timers.size > 0) return;
    for (const told of this.#idle) told();
    this.#idle.clear();
  }

  /** How many timers are set. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Resolves when no timer is set. */
  idle(): Promise<void> {
    if (this.#timers.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.add(resolve));
  }

  /** Someone sets the wall clock by hand; no time passes. */
  stepWall(ms: number): void {
    this.#wallAhead += ms;
  }

  /** The machine was suspended: wall clock and time since boot went on, the monotonic clock stood still. */
  suspend(ms: number): void {
    this.#wallAhead += ms;
    this.#uptimeAhead += ms;
  }
}
