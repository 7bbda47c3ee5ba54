import type { Clock, Timer } from '../clock.js';
import type { LostReason } from '../errors.js';

/** Who has a name now. A `minHold` tail is a holder without owner. */
export interface Holder {
  readonly owner: string | undefined;
  readonly token: bigint;
  readonly acquiredAt: Date;
  readonly metadata: string | undefined;
  expiresAt: number;
  /** Tells the holder's own process, which is this one, that it was forced. */
  readonly lost: ((reason: LostReason) => void) | undefined;
}

/** Someone in the queue. Alive while it sleeps in `awaitTurn`, and for the grace after it last showed itself. */
export interface Waiter {
  readonly owner: string;
  aliveUntil: number;
  /** Ends its sleep. */
  wake: (() => void) | undefined;
  /** A wake-up that came while it was awake. */
  woken: boolean;
}

/** One name: present only while it is held or waited for. */
export interface Entry {
  readonly name: string;
  holder: Holder | undefined;
  /** In the order of arrival. */
  readonly queue: Map<string, Waiter>;
  timer: Timer | undefined;
}

/** How long a waiter that no longer shows itself can delay the queue, ms. */
export const GRACE = 5000;

/**
 * What several memory backends of one process share. Every backend on it meets the same locks.
 */
export class MemoryStore {
  readonly clock: Clock;
  readonly entries = new Map<string, Entry>();
  /** The grant that was broken by force last. */
  forced: { readonly key: string; readonly token: bigint } | undefined;
  #lastToken = 0n;
  #sweep: { readonly at: number; readonly timer: Timer } | undefined;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** One counter for all names, so that a name that was forgotten still rises; time carries it across processes. */
  mintToken(): bigint {
    const now = BigInt(Math.floor(this.clock.wall() * 1000));
    this.#lastToken = now > this.#lastToken ? now : this.#lastToken + 1n;
    return this.#lastToken;
  }

  /** The entry as it is now, an expired holder gone. Undefined when the name is free and nobody waits. */
  find(name: string): Entry | undefined {
    const entry = this.entries.get(name);
    if (entry !== undefined) this.settle(entry);
    return this.entries.get(name);
  }

  make(name: string): Entry {
    const entry: Entry = { name, holder: undefined, queue: new Map(), timer: undefined };
    this.entries.set(name, entry);
    return entry;
  }

  /**
   * Brings an entry up to date after anything changed or time passed: drops an expired holder, wakes the head of a free
   * name and leaves it at the head, so that the name stays reserved for it while it lives.
   */
  settle(entry: Entry): void {
    const now = this.clock.now();
    if (entry.holder !== undefined && entry.holder.expiresAt <= now) entry.holder = undefined;
    const head = first(entry);
    entry.timer?.cancel();
    entry.timer = undefined;
    if (entry.holder === undefined && head === undefined) {
      if (this.entries.get(entry.name) === entry) this.entries.delete(entry.name);
      return;
    }
    if (entry.holder === undefined && head !== undefined) this.#wake(head, now);
    if (head === undefined) {
      this.#sweepBy(entry.holder?.expiresAt ?? Infinity, now);
      return;
    }
    const due = entry.holder?.expiresAt ?? head.aliveUntil;
    entry.timer = this.clock.setTimer(due - now, () => {
      this.#bury(entry);
      this.settle(entry);
    });
  }

  /**
   * Heads that no longer show themselves go, and only a timer may say so: it comes after all the work that is ready to
   * run, so that a process too busy to let its waiters come to sleep does not take them for dead.
   */
  #bury(entry: Entry): void {
    const now = this.clock.now();
    for (const { owner, wake, aliveUntil } of entry.queue.values()) {
      if (wake !== undefined || aliveUntil > now) return;
      entry.queue.delete(owner);
    }
  }

  #wake(waiter: Waiter, now: number): void {
    if (waiter.wake === undefined) {
      waiter.woken = true;
      return;
    }
    waiter.aliveUntil = now + GRACE;
    const wake = waiter.wake;
    waiter.wake = undefined;
    wake();
  }

  /** Names whose holder died and that nobody asks for are forgotten too: one timer for all, at the earliest expiry. */
  #sweepBy(at: number, now: number): void {
    if (at === Infinity || (this.#sweep !== undefined && this.#sweep.at <= at)) return;
    this.#sweep?.timer.cancel();
    const timer = this.clock.setTimer(at - now, () => {
      this.#sweep = undefined;
      for (const entry of [...this.entries.values()]) {
        if (entry.queue.size === 0) this.settle(entry);
      }
      if (this.entries.size === 0) this.#sweep = undefined;
    });
    this.#sweep = { at, timer };
  }

  /** Ends the sweeper's timer when nothing is left to sweep. */
  rest(): void {
    if (this.entries.size > 0) return;
    this.#sweep?.timer.cancel();
    this.#sweep = undefined;
  }
}

/** The head of the queue. */
export function first(entry: Entry): Waiter | undefined {
  return entry.queue.size === 0 ? undefined : entry.queue.values().next().value;
}
