import type { Clock, Timer } from '../clock.js';

interface Pending {
  readonly due: number;
  readonly order: number;
  readonly callback: () => void;
}

/** A clock that moves only when it is told to: for tests and the model. */
export class ManualClock implements Clock {
  #now = 1000;
  #wall = Date.UTC(2026, 0, 1);
  #uptime = 5000;
  #order = 0;
  readonly #timers = new Set<Pending>();

  now(): number {
    return this.#now;
  }

  wall(): number {
    return this.#wall;
  }

  uptime(): number {
    return this.#uptime;
  }

  setTimer(delay: number, callback: () => void): Timer {
    const pending = { due: this.#now + Math.max(0, delay), order: this.#order++, callback };
    if (Number.isFinite(pending.due)) this.#timers.add(pending);
    return { cancel: () => void this.#timers.delete(pending) };
  }

  /** How many timers are set. */
  get timers(): number {
    return this.#timers.size;
  }

  /** The wall clock is set by hand; nothing else moves. */
  setWall(by: number): void {
    this.#wall += by;
  }

  /** The process stands still (a blocked loop, a stopped process): time passes, timers fire only afterwards. */
  freeze(ms: number): void {
    this.#now += ms;
    this.#wall += ms;
    this.#uptime += ms;
  }

  /** The machine is suspended: the monotonic clock stands still, the others go on. */
  suspend(ms: number): void {
    this.#wall += ms;
    this.#uptime += ms;
  }

  /** Time passes; timers fire in order, each with the work that it sets off, before the next. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await this.idle();
    for (let next = this.#next(end); next !== undefined; next = this.#next(end)) {
      this.freeze(Math.max(0, next.due - this.#now));
      this.#timers.delete(next);
      next.callback();
      await this.idle();
    }
    this.freeze(Math.max(0, end - this.#now));
    await this.idle();
  }

  /** Lets everything that needs no time happen: promises, and what they set off. */
  async idle(): Promise<void> {
    for (let turn = 0; turn < 3; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
  }

  #next(end: number): Pending | undefined {
    let next: Pending | undefined;
    for (const timer of this.#timers) {
      if (timer.due > end) continue;
      if (next === undefined || timer.due < next.due || (timer.due === next.due && timer.order < next.order))
        next = timer;
    }
    return next;
  }
}
