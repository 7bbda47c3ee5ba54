import type { Clock, Timer } from './clock.js';

/**
 * How much of a validity of `ms` is given away, so that this process stops believing in its lock before the
 * server does: 1 % for clocks that run at different rates, 2 ms for the grain of clocks and timers.
 */
export function margin(ms: number): number {
  return ms * 0.01 + 2;
}

/**
 * When validity ends: it counts from before the request was sent, since the server may have started its own count
 * at any moment after that.
 *
 * @param from when the answered request was sent
 * @param validFor the life that the server granted, ms
 */
export function validUntil(from: number, validFor: number): number {
  return from + validFor - margin(validFor);
}

/**
 * ms by which the wall clock must have left the monotonic one, either way, to be worth a look at the clock that counts
 * suspension, whose own grain is 10 ms. No machine is suspended for less; should one be, again and again, it adds up.
 */
const JUMP = 20;

/**
 * A clock whose `now()` counts the time that the machine was suspended. The monotonic clock may stand still then,
 * while the server's goes on. A wall clock that jumped is only the occasion to look: it may have been set by hand,
 * so the time counts only if the clock since boot ran ahead. A jump backwards is looked at too: it may hide a suspension.
 */
export class SuspensionAwareClock implements Clock {
  readonly #clock: Clock;
  /** At the last look. */
  #wallAhead: number;
  #uptimeAhead: number;
  #suspended = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    const now = clock.now();
    this.#wallAhead = clock.wall() - now;
    this.#uptimeAhead = clock.uptime() - now;
  }

  now(): number {
    const now = this.#clock.now();
    const wallAhead = this.#clock.wall() - now;
    if (Math.abs(wallAhead - this.#wallAhead) > JUMP) {
      this.#wallAhead = wallAhead;
      const uptimeAhead = this.#clock.uptime() - now;
      const suspended = uptimeAhead - this.#uptimeAhead;
      if (suspended > JUMP) {
        this.#suspended += suspended;
        this.#uptimeAhead = uptimeAhead;
      }
    }
    return now + this.#suspended;
  }

  wall(): number {
    return this.#clock.wall();
  }

  uptime(): number {
    return this.#clock.uptime();
  }

  setTimer(delay: number, callback: () => void, options?: { readonly keepAlive?: boolean }): Timer {
    return this.#clock.setTimer(delay, callback, options);
  }
}
