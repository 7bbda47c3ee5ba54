import type { Claim, Clock, Timer } from '@holdfast/core';
import { LIVENESS } from './liveness.js';

/** Whether a candidate should look again. */
type Turn =
  | { readonly kind: 'wait' }
  | { readonly kind: 'come' }
  | { readonly kind: 'failed'; readonly error: Error };

const WAIT: Turn = { kind: 'wait' };
const COME: Turn = { kind: 'come' };

/** A lock that was handed over: the server's word that it is ours. */
export interface HandOver {
  readonly token: bigint;
  /** The sign of life that the server knew of, by its own clock, ms. */
  readonly sign: number;
}

/** A claim on its way to the lock, from before its first attempt until its grant or release. */
export class Candidate {
  readonly name: string;
  readonly owner: string;
  /** How it stands in the queue, '' not at all. Settled when it joins: an attempt with another ttl keeps its place. */
  place: string;
  /** Attempts under way. */
  pending = 0;
  /** An attempt was left without an answer: the server may still execute it. */
  unanswered = false;
  /** When its place in the queue was last known to be alive; undefined while it has none. */
  seenAt: number | undefined;
  readonly #clock: Clock;
  #turn: Turn = WAIT;
  #handOver: HandOver | undefined;
  /** The last sign of life that was answered: when the server had it by its clock, and when we had sent it by ours. */
  #sign: { readonly at: number; readonly sentAt: number } | undefined;
  #settle: (() => void) | undefined;
  #alarm: { readonly at: number; readonly timer: Timer } | undefined;

  constructor(claim: Claim, place: string, clock: Clock) {
    this.name = claim.name;
    this.owner = claim.owner;
    this.place = place;
    this.#clock = clock;
  }

  /** How the queue calls it. */
  get member(): string {
    return `${this.place} ${this.owner}`;
  }

  /** What was sent for it may be executed after its release. */
  get unsettled(): boolean {
    return this.unanswered || this.pending > 0;
  }

  /** Before an attempt: only what comes from now on is news. */
  forget(): void {
    this.#turn = WAIT;
    this.#cancelAlarm();
  }

  /** Now is a good moment for an attempt. */
  come(): void {
    this.#decide(COME);
  }

  /** So is the moment in `ms` when the lock frees, unless it is renewed. */
  comeIn(ms: number): void {
    if (ms <= 0) {
      this.come();
      return;
    }
    // Within the very millisecond of the expiry the server may not have seen it yet.
    const at = this.#clock.now() + ms + 1;
    if (this.#alarm !== undefined && this.#alarm.at <= at) return;
    this.#cancelAlarm();
    this.#alarm = { at, timer: this.#clock.setTimer(ms + 1, () => this.come()) };
  }

  /** A request that was sent at `sentAt` was a sign of life, which the server had at `at` by its clock. */
  seen(sentAt: number, at: number): void {
    this.seenAt = sentAt;
    this.#sign = { at, sentAt };
  }

  /** The lock was handed over. */
  handed(handOver: HandOver): void {
    this.#handOver = handOver;
    this.come();
  }

  /**
   * The hand-over, once, if it is still good for anything, and since when it counts.
   *
   * No two clocks are compared for that, because a slot that moves and a failover change the server's. The message names
   * the last sign of life that the server had: where that is also the last one that we know of, the lock was handed over
   * after we had sent it. Anything else (a message of an earlier place, late) is not relied on: the server is asked.
   */
  takeHandOver(): { readonly token: bigint; readonly from: number } | undefined {
    const handOver = this.#handOver;
    const sign = this.#sign;
    this.#handOver = undefined;
    if (handOver === undefined || sign === undefined || handOver.sign !== sign.at) return undefined;
    const from = sign.sentAt;
    return this.#clock.now() - from < LIVENESS / 2 ? { token: handOver.token, from } : undefined;
  }

  /** The place cannot be kept. */
  fail(error: Error): void {
    this.#decide({ kind: 'failed', error });
  }

  /** Resolves at the next good moment for an attempt, or when `signal` aborts; at once if that moment has passed. */
  async turn(signal: AbortSignal): Promise<void> {
    if (this.#turn.kind === 'wait' && !signal.aborted) await this.#decided(signal);
    const turn = this.#turn;
    this.forget();
    if (turn.kind === 'failed') throw turn.error;
  }

  #decided(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const settle = (): void => {
        signal.removeEventListener('abort', settle);
        this.#settle = undefined;
        resolve();
      };
      this.#settle = settle;
      signal.addEventListener('abort', settle);
    });
  }

  #decide(turn: Turn): void {
    this.#turn = turn;
    this.#settle?.();
  }

  #cancelAlarm(): void {
    this.#alarm?.timer.cancel();
    this.#alarm = undefined;
  }
}
