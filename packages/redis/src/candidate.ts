import type { Claim, Clock, Timer } from '@holdfast/core';

/** Whether a candidate should look again. */
type Turn =
  | { readonly kind: 'wait' }
  | { readonly kind: 'come' }
  | { readonly kind: 'failed'; readonly error: Error };

const WAIT: Turn = { kind: 'wait' };
const COME: Turn = { kind: 'come' };

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
