import type { Clock, Contended, Timer } from '@holdfast/core';

/** A waiter looks again after this long at the latest, ms: every message may have been lost. */
const LONGEST = 1000;

/** How far apart contenders of different instances come back after a message, ms: doubled with each collision. */
const FIRST_SPREAD = 4;
const LONGEST_SPREAD = 128;

interface Waiter {
  readonly owner: string;
  /** Messages that the crowd had heard when its last attempt began. */
  heard: number;
  resolve: (() => void) | undefined;
}

/**
 * The waiters of this instance for one name. There is no queue at the servers, so they stand in line here, and only the
 * first of them contends with other instances: fewer contenders, fewer split votes.
 */
export class Crowd {
  readonly #clock: Clock;
  readonly #line: Waiter[] = [];
  #messages = 0;
  #spread = FIRST_SPREAD;
  #timer: Timer | undefined;
  /** The timer is for a name that may be free. */
  #soon = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#line.length;
  }

  /** Before each attempt: a message that comes from now on is remembered. True if the owner is new here. */
  enter(owner: string): boolean {
    const present = this.#find(owner);
    if (present !== undefined) present.heard = this.#messages;
    else this.#line.push({ owner, heard: this.#messages, resolve: undefined });
    return present === undefined;
  }

  leave(owner: string): void {
    const index = this.#line.findIndex((waiter) => waiter.owner === owner);
    if (index < 0) return;
    const [gone] = this.#line.splice(index, 1);
    gone?.resolve?.();
    if (index > 0) return;
    this.#cancelTimer();
    this.#spread = FIRST_SPREAD;
    if (this.#line[0]?.resolve !== undefined) this.#comeIn(LONGEST);
  }

  /** The name may be free. */
  hear(): void {
    this.#messages++;
    if (this.#line[0]?.resolve !== undefined) this.#comeSoon();
  }

  async turn(owner: string, contended: Contended, signal: AbortSignal): Promise<void> {
    const waiter = this.#find(owner);
    if (waiter === undefined || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const settle = (): void => {
        signal.removeEventListener('abort', settle);
        waiter.resolve = undefined;
        resolve();
      };
      signal.addEventListener('abort', settle);
      waiter.resolve = settle;
      if (waiter !== this.#line[0]) return;
      // Nobody has it, and yet we did not get it: several have asked at once.
      const collided = contended.retryAfter === undefined;
      if (collided) this.#spread = Math.min(this.#spread * 2, LONGEST_SPREAD);
      if (collided || waiter.heard !== this.#messages) this.#comeSoon();
      else this.#comeIn(Math.min(LONGEST, contended.retryAfter ?? LONGEST));
    });
  }

  close(): void {
    this.#cancelTimer();
  }

  /** Every server tells the news: the first one sets the time. */
  #comeSoon(): void {
    if (this.#soon) return;
    this.#set(Math.random() * this.#spread);
    this.#soon = true;
  }

  #comeIn(ms: number): void {
    this.#set(ms + 1 + Math.random() * this.#spread);
  }

  #set(ms: number): void {
    this.#cancelTimer();
    this.#timer = this.#clock.setTimer(ms, () => {
      this.#cancelTimer();
      this.#line[0]?.resolve?.();
    });
  }

  #cancelTimer(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#soon = false;
  }

  #find(owner: string): Waiter | undefined {
    return this.#line.find((waiter) => waiter.owner === owner);
  }
}
