import type { Clock, Timer } from './clock.js';

/** A limit that has been set, until it is lifted or passes. */
export interface Deadline {
  /** On the clock's `now`. */
  readonly at: number;
  readonly onLate: () => void;
  /** Where it is among those that are pending; −1 once it is over. */
  index: number;
}

/**
 * The deadlines of many short calls on one timer: one for each call would be set and taken back a hundred thousand times
 * for once that it fires.
 */
export class Deadlines {
  readonly #clock: Clock;
  readonly #keepAlive: boolean;
  readonly #pending: Deadline[] = [];
  /** At the earliest deadline or before. It may outlast them all: then it keeps nothing alive, and finds nothing to do. */
  #alarm: { readonly at: number; readonly timer: Timer } | undefined;
  #stopped = false;

  /** @param options.keepAlive whether the process stays alive while any is pending: default true */
  constructor(clock: Clock, { keepAlive = true }: { readonly keepAlive?: boolean } = {}) {
    this.#clock = clock;
    this.#keepAlive = keepAlive;
  }

  /**
   * @param onLate called once unless it is lifted within `ms`; must not throw
   * @param now for callers who have just looked
   */
  set(ms: number, onLate: () => void, now = this.#clock.now()): Deadline {
    const deadline = { at: now + ms, onLate, index: this.#pending.length };
    this.#pending.push(deadline);
    this.#alarmBy(deadline.at);
    if (deadline.index === 0 && this.#keepAlive) this.#alarm?.timer.keepAlive?.(true);
    return deadline;
  }

  /** Harmless when it is over. */
  lift(deadline: Deadline): void {
    if (deadline.index < 0) return;
    const last = this.#pending.pop();
    if (last !== undefined && last !== deadline) {
      this.#pending[deadline.index] = last;
      last.index = deadline.index;
    }
    deadline.index = -1;
    if (this.#pending.length === 0) this.#rest();
  }

  /** No timer is left from here on but for what is pending, which passes in its time. */
  stop(): void {
    this.#stopped = true;
    if (this.#pending.length === 0) this.#rest();
  }

  /** Setting the timer anew for the next call would cost more than letting it lapse. */
  #rest(): void {
    const timer = this.#alarm?.timer;
    if (!this.#stopped && (!this.#keepAlive || timer?.keepAlive !== undefined)) {
      timer?.keepAlive?.(false);
      return;
    }
    timer?.cancel();
    this.#alarm = undefined;
  }

  #alarmBy(at: number): void {
    if (at === Infinity || (this.#alarm !== undefined && this.#alarm.at <= at)) return;
    this.#alarm?.timer.cancel();
    // Timers may fire a fraction of a millisecond early by the monotonic clock: round up rather than spin.
    const delay = Math.max(0, Math.ceil(at - this.#clock.now()));
    this.#alarm = {
      at,
      timer: this.#clock.setTimer(delay, () => this.#run(), { keepAlive: this.#keepAlive }),
    };
  }

  #run(): void {
    this.#alarm = undefined;
    const now = this.#clock.now();
    for (const deadline of this.#pending.filter(({ at }) => at <= now)) {
      this.lift(deadline);
      deadline.onLate();
    }
    let next = Infinity;
    for (const { at } of this.#pending) next = Math.min(next, at);
    this.#alarmBy(next);
  }
}
