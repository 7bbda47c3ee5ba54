import type { Clock, Timer } from '@holdfast/core';

/** A clock that goes only when told. */
export class TestClock implements Clock {
  #now = 0;
  readonly #timers = new Set<{ due: number; callback: () => void }>();

  now(): number {
    return this.#now;
  }
  wall(): number {
    return this.#now;
  }
  uptime(): number {
    return this.#now;
  }
  get timers(): number {
    return this.#timers.size;
  }
  setTimer(delay: number, callback: () => void): Timer {
    const timer = { due: this.#now + delay, callback };
    this.#timers.add(timer);
    return { cancel: () => this.#timers.delete(timer) };
  }
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      const [next] = [...this.#timers].sort((a, b) => a.due - b.due);
      if (next === undefined || next.due > end) break;
      this.#now = Math.max(this.#now, next.due);
      this.#timers.delete(next);
      next.callback();
      for (let i = 0; i < 20; i++) await Promise.resolve();
    }
    this.#now = end;
    for (let i = 0; i < 20; i++) await Promise.resolve();
  }
}
