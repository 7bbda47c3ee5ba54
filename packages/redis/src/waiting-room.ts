import type { Claim, Clock, Contended, Timer } from '@holdfast/core';
import { Waiter } from './waiter.js';

/** How long a waiter counts as alive after its last sign of life, ms. As in scripts/acquire.lua. */
export const LIVENESS = 5000;

/** A third of the liveness: a late sign of life still comes in time, and so does the one after a lost one. */
export const REFRESH_PERIOD = LIVENESS / 3;

/** What the server says of one name when its waiters give a sign of life. */
export interface Presence {
  /** The head's queue member, '' without one. */
  readonly head: string;
  /** ms until the holder's time ends; 0: the lock is free. */
  readonly left: number;
  /** Members that have lost their place. */
  readonly gone: readonly string[];
}

export interface WaitingRoomOptions {
  readonly clock: Clock;
  /** Tells waiters of different instances apart: part of every queue member, and the channel's name. */
  readonly instance: string;
  /** Gives a sign of life for members of one name. */
  refresh(name: string, members: readonly string[]): Promise<Presence>;
  /** Called with each round of signs of life. */
  onRound(): void;
}

/**
 * The claims of this instance that wait.
 *
 * A waiter comes to its turn by a message, but a message is a hint that may be lost. So each round of signs of life
 * also tells which waiter is the head, and how long the holder has: the head looks again then.
 */
export class WaitingRoom {
  readonly #options: WaitingRoomOptions;
  readonly #waiters = new Map<string, Waiter>();
  #queued = 0;
  #round: Timer | undefined;
  #closed = false;

  constructor(options: WaitingRoomOptions) {
    this.#options = options;
  }

  /** How the queue calls this claim. */
  memberOf(claim: Claim): string {
    return claim.queue ? `${this.#options.instance} ${claim.owner}` : '';
  }

  /** Before each attempt of a claim that waits: a message that comes from now on is remembered. */
  enter(claim: Claim): void {
    const present = this.#waiters.get(claim.owner);
    if (present !== undefined) present.forget();
    else this.#waiters.set(claim.owner, new Waiter(claim.name, this.memberOf(claim), this.#options.clock));
  }

  /** The claim has its place, as known from a request sent at `sentAt`. */
  queued(claim: Claim, { position, retryAfter }: Contended, sentAt: number): void {
    const waiter = this.#waiters.get(claim.owner);
    if (waiter === undefined) return;
    if (waiter.seenAt === undefined) this.#queued++;
    waiter.seenAt = sentAt;
    // Only the head can take the lock when the holder's time ends.
    if (position === 1 && retryAfter !== undefined) waiter.comeIn(retryAfter);
    this.#nextRound();
  }

  /** The claim was granted or given up. */
  leave(owner: string): void {
    const waiter = this.#waiters.get(owner);
    if (waiter === undefined) return;
    this.#waiters.delete(owner);
    if (waiter.seenAt !== undefined) this.#queued--;
    waiter.leave();
    if (this.#queued > 0) return;
    this.#round?.cancel();
    this.#round = undefined;
  }

  async turn(owner: string, signal: AbortSignal): Promise<void> {
    await this.#waiters.get(owner)?.turn(signal);
  }

  /** A message: '<ms until the lock frees> <owner>'. */
  hear(message: string): void {
    const space = message.indexOf(' ');
    this.#waiters.get(message.slice(space + 1))?.comeIn(Number(message.slice(0, space)));
  }

  /** Messages may have been lost: a round now finds out what they said. */
  recheck(): void {
    if (this.#queued === 0 || this.#closed) return;
    this.#round?.cancel();
    this.#runRound();
  }

  close(): void {
    this.#closed = true;
    this.#round?.cancel();
    this.#round = undefined;
  }

  #nextRound(): void {
    if (this.#round !== undefined || this.#queued === 0 || this.#closed) return;
    // A little apart, so that instances that started together do not stay together.
    const pause = REFRESH_PERIOD * (0.9 + Math.random() / 10);
    this.#round = this.#options.clock.setTimer(pause, () => this.#runRound());
  }

  #runRound(): void {
    this.#round = undefined;
    for (const [name, waiters] of this.#byName()) this.#refresh(name, waiters);
    this.#options.onRound();
    this.#nextRound();
  }

  #byName(): Map<string, Waiter[]> {
    const names = new Map<string, Waiter[]>();
    for (const waiter of this.#waiters.values()) {
      if (waiter.seenAt === undefined) continue;
      const waiters = names.get(waiter.name);
      if (waiters === undefined) names.set(waiter.name, [waiter]);
      else waiters.push(waiter);
    }
    return names;
  }

  #refresh(name: string, waiters: readonly Waiter[]): void {
    const sentAt = this.#options.clock.now();
    const members = waiters.map((waiter) => waiter.member);
    this.#options.refresh(name, members).then(
      (presence) => {
        const gone = new Set(presence.gone);
        for (const waiter of waiters) {
          if (gone.has(waiter.member)) waiter.come();
          else this.#seen(waiter, presence, sentAt);
        }
      },
      (error: unknown) => {
        // One lost sign of life costs nothing. When the place is as good as lost, the waiter should hear of it.
        const now = this.#options.clock.now();
        for (const waiter of waiters) {
          if (now - (waiter.seenAt ?? now) >= LIVENESS) waiter.fail(error as Error);
        }
      },
    );
  }

  #seen(waiter: Waiter, presence: Presence, sentAt: number): void {
    waiter.seenAt = Math.max(waiter.seenAt ?? 0, sentAt);
    if (presence.head === waiter.member) waiter.comeIn(presence.left);
  }
}
