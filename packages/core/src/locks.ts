import type { Clock } from './clock.js';
import type { Duration } from './duration.js';
import type { LockLostError } from './errors.js';
import type { LockHandle } from './handle.js';
import type { DistributedLock, LockOptions } from './lock.js';

/** The locks of one backend: everything starts here. */
export interface Locks extends AsyncDisposable {
  readonly backend: { readonly name: string; readonly capabilities: Capabilities };
  /**
   * A lock by its name: 1 to 512 bytes of well-formed UTF-8 without U+0000, compared byte for byte.
   *
   * @throws InvalidArgumentError
   */
  lock(name: string, defaults?: LockOptions): DistributedLock;
  /**
   * Continues a hold that was serialized elsewhere: replaces the owner, keeps the token.
   *
   * @throws LockLostError when it is gone or somebody else adopted it; InvalidArgumentError; UnsupportedError
   */
  adopt(serialized: string): Promise<LockHandle>;
  /** Who holds the name, and who waits. */
  inspect(name: string): Promise<LockState>;
  /** The names held or waited for, each at most once, as they are met (no snapshot). */
  list(filter?: { readonly prefix?: string }): AsyncIterable<LockState>;
  /** Breaks exclusion by design: the name is free at once. With `expected`, only that grant is broken. */
  forceRelease(name: string, expected?: { readonly fencingToken: bigint }): Promise<boolean>;
  /** Listens; returns the function that stops listening. A listener that throws breaks nothing. */
  on<E extends keyof LockEvents>(event: E, listener: (event: LockEvents[E]) => void): () => void;
  /** Stops acquisitions, releases every handle still held, closes the connections that it opened. */
  close(): Promise<void>;
}

/** What is known about a name. */
export interface LockState {
  readonly name: string;
  /** Also true during a `minHold` tail. */
  readonly held: boolean;
  readonly owner?: string;
  readonly fencingToken?: bigint;
  readonly acquiredAt?: Date;
  /** ms until the server frees it unless renewed. */
  readonly expiresIn?: number;
  readonly metadata?: string;
  readonly waiters: readonly { readonly owner: string; readonly position: number }[];
  /** For logs: the token as a string. Added by core. */
  toJSON?(): Record<string, unknown>;
}

/** What a backend promises, as known once connected. */
export interface Capabilities {
  /** `fifo`: waiters are served in the order in which the backend received them. */
  readonly fairness: 'fifo' | 'none';
  /** How a waiter learns that its turn has come. */
  readonly wake: 'push' | 'poll';
  /** Who frees a dead holder's lock, and by what clock. */
  readonly expiry: 'server-ttl' | 'session';
  readonly consistency: 'linearizable' | 'single-node' | 'async-replicated' | 'quorum' | 'in-process';
  /** Other processes meet the same locks. */
  readonly crossProcess: boolean;
  /** `serialize()` and `adopt()` work. */
  readonly transferable: boolean;
  /** Whether a `minHold` tail outlives this process. */
  readonly minHold: 'server' | 'session';
  /** ms: how long a dead waiter can delay the queue. */
  readonly grace: number;
  /** ms. A ttl below `min` is raised, above `max` lowered, between grains rounded up. */
  readonly ttl: { readonly min: number; readonly max: number; readonly granularity: number };
}

/** What every event carries besides its own: when, and name and owner where there is a claim. */
export interface EventContext {
  readonly at: Date;
  readonly name?: string;
  readonly owner?: string;
}

/** Events of `locks.on()` and of the `holdfast:*` diagnostics channels. */
export interface LockEvents {
  /** Refused for now, waiting. */
  readonly waiting: EventContext & { readonly position?: number; readonly holder?: string };
  /** Held. `waited` in ms. */
  readonly acquired: EventContext & { readonly fencingToken: bigint; readonly waited: number };
  /** Renewed by the watchdog or by `extend`. `ttl` in ms. */
  readonly renewed: EventContext & { readonly ttl: number };
  readonly lost: EventContext & { readonly error: LockLostError };
  /** Given back. `heldFor` in ms. */
  readonly released: EventContext & { readonly heldFor: number };
  /** A fault that no call could carry. */
  readonly error: EventContext & { readonly error: Error };
}

/** How the locks of one backend behave. */
export interface LocksOptions {
  /** Defaults of every acquisition: any `AcquireOptions` except `signal`. */
  readonly defaults?: LockOptions & { readonly wait?: Duration };
  /** Added to every fencing token, for moving to another backend or restoring one. Default 0n. */
  readonly fenceOffset?: bigint;
  /** Gives up an acquisition after this long without any answer from the backend. Default 60 s. */
  readonly unavailableAfter?: Duration;
  /** How long a single call to the backend may take. Default 5 s. */
  readonly commandTimeout?: Duration;
  /** Default `systemClock`. For tests and simulations. */
  readonly clock?: Clock;
}
