import type { Duration } from './duration.js';

/** One hold of a lock, from grant to release or loss. */
export interface LockHandle extends AsyncDisposable {
  readonly name: string;
  /** Unique for this acquisition: host, pid and a random part, for people who debug. */
  readonly owner: string;
  /** Rises strictly with each grant of this name; give it to the resource, which refuses older ones. */
  readonly fencingToken: bigint;
  /** Aborts with `LockLostError` when the lock is lost. */
  readonly signal: AbortSignal;
  /** The effective ttl in ms. */
  readonly ttl: number;
  /** ms of guaranteed validity left; 0 once lost or released. */
  remaining(): number;
  /** True only while validity is guaranteed. Synchronous; asks the clock, not the server. */
  isHeld(): boolean;
  /** Asks the backend whether the lock is still ours. */
  verify(): Promise<boolean>;
  /**
   * Sets the ttl (default: the present one), counted from now, up or down.
   *
   * @throws LockLostError when no longer the owner
   */
  extend(ttl?: Duration): Promise<void>;
  /** Gives the lock back. True: this call did; false: it was already gone. Rejects with `BackendError` if the outcome stays unknown. */
  release(): Promise<boolean>;
  /** Detaches the hold here, so that `locks.adopt()` continues it elsewhere within the ttl. */
  serialize(): string;
  /** Releases; never rejects (a failure becomes event `error`). */
  [Symbol.asyncDispose](): Promise<void>;
  /** For logs: the token as a string. */
  toJSON(): Record<string, unknown>;
}
