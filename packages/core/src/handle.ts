import { type Duration, MAX_DURATION, parseDuration } from './duration.js';
import type { Engine } from './engine.js';
import { LockLostError, UnsupportedError } from './errors.js';
import type { Hold } from './hold.js';
import { pack } from './transfer.js';

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
   * Sets the ttl (default: the present one), counted from now, up or down. Down, the handle goes by it at once; the server
   * keeps what it promised before, so that a late renewal can never cut a later promise.
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

/** A handle on a hold: its own part is only whether this handle has been released. */
export class Handle implements LockHandle {
  readonly #engine: Engine;
  readonly #hold: Hold;
  readonly #limit: number;
  #released = false;

  /**
   * @param limit when a re-entrant call's own `maxHold` ends the hold, unless this handle has been released by then
   */
  constructor(engine: Engine, hold: Hold, limit = Infinity) {
    this.#engine = engine;
    this.#hold = hold;
    this.#limit = limit;
    hold.share(limit);
  }

  get name(): string {
    return this.#hold.claim.name;
  }

  get owner(): string {
    return this.#hold.claim.owner;
  }

  get fencingToken(): bigint {
    return this.#hold.fencingToken;
  }

  get signal(): AbortSignal {
    return this.#hold.signal;
  }

  get ttl(): number {
    return this.#hold.ttl;
  }

  /** For the engine's own use. */
  get hold(): Hold {
    return this.#hold;
  }

  /** True once `release` was called, or the hold was handed to another process. */
  get released(): boolean {
    return this.#released || this.#hold.state === 'detached';
  }

  remaining(): number {
    return this.#released ? 0 : this.#hold.remaining();
  }

  isHeld(): boolean {
    return !this.#released && this.#hold.isHeld();
  }

  async verify(): Promise<boolean> {
    return !this.#released && this.#hold.verify();
  }

  async extend(ttl: Duration = this.#hold.ttl): Promise<void> {
    const ms = parseDuration(ttl, 'ttl', { max: MAX_DURATION });
    if (this.#released) throw new LockLostError(this.name, 'superseded', { detail: 'it was released' });
    await this.#hold.extend(ms);
  }

  release(): Promise<boolean> {
    if (!this.#released) {
      this.#released = true;
      // A re-entrant hold goes back to the server with the last handle.
      if (!this.#hold.unshare(this.#limit)) return Promise.resolve(this.#hold.isHeld());
    } else if (this.#hold.state !== 'unreleased') {
      return Promise.resolve(false);
    }
    return this.#hold.release();
  }

  serialize(): string {
    if (!this.#engine.capabilities.transferable) {
      throw new UnsupportedError(
        `${this.#engine.backend.name} ties a lock to its session: lock ${JSON.stringify(this.name)} cannot be handed to another process`,
        { lockName: this.name },
      );
    }
    if (this.#released) throw new LockLostError(this.name, 'superseded', { detail: 'it was released' });
    this.#hold.detach();
    return pack(this.#engine.backend, this.#hold, this.#engine.clock.wall());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.release();
    } catch (error) {
      this.#engine.report(error as Error, this.#hold.claim);
    }
  }

  toJSON(): Record<string, unknown> {
    return {
      name: this.name,
      owner: this.owner,
      fencingToken: String(this.fencingToken),
      ttl: this.ttl,
      held: this.isHeld(),
      remaining: this.remaining(),
    };
  }
}
