import type { Clock, Timer } from '@holdfast/core';

/** Whether a waiter should look again. */
type Turn =
  | { readonly kind: 'wait' }
  | { readonly kind: 'come' }
  | { readonly kind: 'failed'; readonly error: Error };

const WAIT: Turn = { kind: 'wait' };
const COME: Turn = { kind: 'come' };

/** One claim that may wait, from before its first attempt until its grant or release. */
export class Waiter {
  readonly name: string;
  /** Its place in the queue is under this name. */
  readonly member: string;
  /** When its place was last known to be alive; undefined while it has none. */
  seenAt: number | undefined;
  readonly #clock: Clock;
  #turn: Turn = WAIT;
  #settle: (() => void) | undefined;
  #alarm: { readonly at: number; readonly timer: Timer } | undefined;

  constructor(name: string, member: string, clock: Clock) {
    this.name = name;
    this.member = member;
    this.#clock = clock;
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

  /** It waits no more. */
  leave(): void {
    this.come();
    this.#cancelAlarm();
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
