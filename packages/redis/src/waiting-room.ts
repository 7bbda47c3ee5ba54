import { type Claim, type Clock, type Contended, OwnerMap, type Timer } from '@holdfast/core';
import { Candidate } from './candidate.js';
import { LIVENESS, REFRESH_PERIOD } from './liveness.js';

/** What the server says of one name when its waiters give a sign of life. */
export interface Presence {
  /** The head's queue member, '' without one. */
  readonly head: string;
  /** ms until the holder's time ends; 0: the lock is free. */
  readonly left: number;
  /** Members that have lost their place, or were handed the lock. */
  readonly gone: readonly string[];
}

export interface WaitingRoomOptions {
  readonly clock: Clock;
  /** How a claim of this instance stands in the queue, '' not at all. */
  placeOf(claim: Claim): string;
  /** Gives a sign of life for members of one name. */
  refresh(name: string, members: readonly string[]): Promise<Presence>;
  /** Called with each round of signs of life. */
  onRound(): void;
}

/**
 * The claims of this instance that are on their way to a lock, waiting or not.
 *
 * A waiter comes to its turn by a message, but a message is a hint that may be lost. So each round of signs of life
 * also tells which waiter is the head, and how long the holder has: the head looks again then.
 */
export class WaitingRoom {
  readonly #options: WaitingRoomOptions;
  readonly #candidates = new OwnerMap<Candidate>();
  #queued = 0;
  #round: Timer | undefined;
  #closed = false;

  constructor(options: WaitingRoomOptions) {
    this.#options = options;
  }

  /** Before each attempt: a message that comes from now on is remembered. */
  enter(claim: Claim): Candidate {
    const present = this.#candidates.get(claim.owner);
    if (present !== undefined) {
      present.forget();
      if (present.place === '') present.place = this.#options.placeOf(claim);
      return present;
    }
    const candidate = new Candidate(claim, this.#options.placeOf(claim), this.#options.clock);
    this.#candidates.set(claim.owner, candidate);
    return candidate;
  }

  /** The candidate has its place, as known from a request sent at `sentAt`. */
  queued(candidate: Candidate, { position, retryAfter }: Contended, sentAt: number): void {
    // Given up meanwhile.
    if (this.#candidates.get(candidate.owner) === undefined) return;
    if (candidate.seenAt === undefined) this.#queued++;
    candidate.seenAt = sentAt;
    // Only the head can take the lock when the holder's time ends.
    if (position === 1 && retryAfter !== undefined) candidate.comeIn(retryAfter);
    this.#nextRound();
  }

  /** It waits no more: granted, or about to be given up. */
  dismiss(candidate: Candidate): void {
    candidate.forget();
    candidate.come();
    if (candidate.seenAt === undefined) return;
    candidate.seenAt = undefined;
    if (--this.#queued > 0) return;
    this.#round?.cancel();
    this.#round = undefined;
  }

  find(owner: string): Candidate | undefined {
    return this.#candidates.get(owner);
  }

  /** Nothing of it is left, here or at the server. */
  remove(candidate: Candidate): void {
    this.#candidates.delete(candidate.owner);
  }

  /** A message: 'wake <ms until the next attempt is worth it> <owner>'. */
  hear(message: string): void {
    // Anybody may publish: what is no message of ours must not throw in a handler.
    const [, ms, owner = ''] = /^wake (\d+) (\S+)$/.exec(message) ?? [];
    if (ms !== undefined) this.#candidates.get(owner)?.comeIn(Number(ms));
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
    for (const [name, waiters] of this.#waitersByName()) this.#refresh(name, waiters);
    this.#options.onRound();
    this.#nextRound();
  }

  #waitersByName(): Map<string, Candidate[]> {
    const names = new Map<string, Candidate[]>();
    for (const candidate of this.#candidates.values()) {
      if (candidate.seenAt === undefined) continue;
      const waiters = names.get(candidate.name);
      if (waiters === undefined) names.set(candidate.name, [candidate]);
      else waiters.push(candidate);
    }
    return names;
  }

  #refresh(name: string, waiters: readonly Candidate[]): void {
    const sentAt = this.#options.clock.now();
    const members = waiters.map((waiter) => waiter.member);
    this.#options.refresh(name, members).then(
      ({ head, left, gone }) => {
        const lost = new Set(gone);
        for (const waiter of waiters) {
          // Given up, or granted, while the question was under way.
          if (waiter.seenAt === undefined) continue;
          if (lost.has(waiter.member)) {
            waiter.come();
            continue;
          }
          waiter.seenAt = sentAt;
          if (head === waiter.member) waiter.comeIn(left);
        }
      },
      (error: unknown) => {
        // One lost sign of life costs nothing. When the place is as good as lost, the waiter should hear of it.
        const now = this.#options.clock.now();
        for (const waiter of waiters) {
          if (waiter.seenAt !== undefined && now - waiter.seenAt >= LIVENESS) waiter.fail(error as Error);
        }
      },
    );
  }
}
