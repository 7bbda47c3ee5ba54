import type { Clock } from './clock.js';
import type { LostReason } from './errors.js';
import type { Capabilities, LockState } from './locks.js';

/**
 * The seam between core and a backend: **core decides, a backend only asks its server.**
 *
 * Core owns argument checks, deadlines, the wait loop, retries, validity, the watchdog, loss, re-entry, events and
 * `close`. A backend owns talking to its server correctly, idempotence per owner, the queue, wake-ups, the server's
 * clock, and turning its client's errors into `BackendError` (`transient` says whether asking again may help).
 *
 * Whoever implements this and passes `@holdfast/conformance` has a Holdfast backend.
 */
export interface LockBackend {
  /** The backend's kind, such as `redis`. Part of a serialized hold. */
  readonly name: string;
  /** Isolates tenants that share a server: part of every key, channel, row or node. Part of a serialized hold. */
  readonly prefix?: string;

  /**
   * Connects and checks: the server answers, speaks the protocol, lets us in. Called once, before anything else, and
   * never again: not after `close`, nor after it failed (`close` follows that too).
   *
   * @returns the capabilities as they are on this server
   * @throws BackendError when the server cannot be reached or refuses
   */
  open(host?: BackendHost): Promise<Capabilities>;

  /**
   * Another backend object that meets the same locks, for when this one is given to a second `Locks`. Only where it costs
   * no connection; without it, that is refused.
   */
  twin?(): LockBackend;

  /**
   * One try to take the lock; never waits for another holder.
   *
   * - **Idempotent by owner.** The same owner asking again has the same grant with the same token, and never less
   *   time than before: expiry becomes max(present, now + ttl). So core resolves an unknown outcome by asking again.
   * - With `claim.queue` a refused claim joins the queue, or keeps its place if it is there; a claim that lost its
   *   place joins at the end. Without it, nothing is left behind. Either way a live waiter is not overtaken.
   * - With `claim.queue`, interest in a wake-up is registered before the request is sent: a wake-up between `attempt`
   *   and `awaitTurn` must not be lost. The interest ends with the grant or with `release(claim)`.
   * - Core never calls it with an owner that has been released, and makes a new owner for each acquisition.
   * - It settles within the command timeout, by answer or by rejection. A rejection means "unknown" unless it is a
   *   `BackendError` with `transient: false`. Core calls again, or `release`.
   */
  attempt(claim: Claim): Promise<Grant | Contended>;

  /**
   * Resolves when another attempt is worth it: the claim's turn may have come, the place must be refreshed, or the
   * connection came back. Early is harmless (core pauses before it believes a second turn in a row that came at once),
   * never is not. It keeps the place alive meanwhile, or resolves in time for the next attempt to do so. When `signal` aborts it resolves and leaves no timer or listener.
   *
   * @throws BackendError when the place cannot be kept: core backs off and attempts again
   */
  awaitTurn(claim: Claim, contended: Contended, signal: AbortSignal): Promise<void>;

  /**
   * Renews many grants in one go, in order, each for its `ttl`. Checks owner (and token), never re-creates a lock that
   * has gone, never shortens what the server has. Throwing means "unknown" for all of them.
   */
  renew(grants: readonly Grant[]): Promise<readonly Renewal[]>;

  /** As `renew`, for one grant with a new ttl. Never shortens at the server; the shorter ttl counts in core at once. */
  extend(grant: Grant, ttl: number): Promise<Renewal>;

  /**
   * Removes this claim's grant or its queue entry, whichever is there, and nobody else's, then wakes the next waiter
   * if the lock is free. Idempotent. It must not be overtaken by an earlier `attempt` of the same claim whose outcome
   * is unknown: see the rules on clean-up in the backend guide.
   *
   * @param options.keepFor leave the name taken, without owner, for this many ms (a `minHold` tail)
   * @returns true if this call removed a grant of this owner
   */
  release(claim: Claim, options?: { readonly keepFor?: number }): Promise<boolean>;

  /**
   * Replaces the owner of a grant in one step, keeps the token, sets expiry to max(present, now + ttl). Idempotent:
   * asked again after a lost answer, it finds `newOwner` with this token and returns the same grant.
   *
   * @returns undefined when the grant's owner or token is not the present one
   * @throws UnsupportedError where `capabilities.transferable` is false
   */
  adopt(grant: Grant, newOwner: string): Promise<Grant | undefined>;

  /** The name's present state. `held` is true during a `minHold` tail, without owner. Waiters in order, from position 1. */
  inspect(name: string): Promise<LockState>;

  /** Every name that is held or waited for, each at most once, as they are met. `prefix` filters names. */
  list(prefix?: string): AsyncIterable<LockState>;

  /**
   * Frees the name whoever holds it, tail included; the queue stays, and its head is woken.
   *
   * @param expected only break the grant with this token, atomically
   * @returns true if something was freed
   */
  forceRelease(name: string, expected?: bigint): Promise<boolean>;

  /**
   * Whether that grant was broken by force, as far as the server remembers. Asked after a `forceRelease` whose first
   * answer was lost, and after a release that found nothing of its own. Optional: a backend whose `forceRelease` and
   * `release`, asked again, say by themselves whether it was they that freed the lock, needs nothing here.
   */
  wasForced?(name: string, token: bigint): Promise<boolean>;

  /** Ends every timer and subscription, and closes the connections that the backend opened itself. Idempotent. */
  close(): Promise<void>;

  /**
   * Asks the server whether the grant is still this owner's, where `inspect` would not be proof (a server that may
   * answer reads while cut off). Optional: core compares owner and token of `inspect` otherwise.
   */
  verify?(grant: Grant): Promise<boolean>;

  /**
   * The grant goes on without this process: it was serialized, and must outlive `close()` for its ttl. Optional:
   * backends whose grants do not depend on a connection or a shared lease need nothing here.
   */
  detach?(grant: Grant): Promise<void>;

  /**
   * The claim could not be given back: no release was answered for so long that the server has let it lapse, or will as
   * soon as nothing here keeps it alive. Forgets it; asks the server nothing; must not throw. Optional: a backend that
   * remembers nothing of a claim needs nothing here.
   */
  letLapse?(claim: Claim): void;

  /**
   * Facts that `holdfast doctor` shows: what this server's settings mean for locks. Optional.
   */
  diagnose?(): Promise<readonly Diagnosis[]>;
}

/** What core lends to a backend when it opens it. */
export interface BackendHost {
  /** The only clock and the only timers. */
  readonly clock: Clock;
  /**
   * Milliseconds that one request to the server may take before it counts as unanswered (2 s by default): less than
   * the caller's command timeout, so that an unknown outcome can be asked for again within it.
   */
  readonly commandTimeout: number;
  /**
   * Tells core early that a grant of this owner is gone (a session that ended, a key that was seen deleted).
   * Optional for a backend: without it core finds out at the next renewal or when validity ends.
   */
  lost(owner: string, reason: LostReason, cause?: Error): void;
  /** Reports a fault that no call can carry (a subscription that broke, a sweep that failed): event `error`. */
  report(error: Error): void;
}

/** One wish for a lock. `owner` is fresh for each acquisition and compared whole. */
export interface Claim {
  readonly name: string;
  readonly owner: string;
  /** How long a grant lasts unless renewed, ms: already checked, within `capabilities.ttl`, rounded up to its grain. */
  readonly ttl: number;
  /** Join the queue when refused. */
  readonly queue: boolean;
  /** The watchdog will renew a grant. False lets a backend bind the grant to something of its own (an etcd lease). */
  readonly renew: boolean;
  /** Free text of the holder, shown by `inspect`. */
  readonly metadata?: string;
}

/** The lock is ours. */
export interface Grant {
  readonly claim: Claim;
  /** Strictly increasing per name; the same for as long as the hold lives. Fits a signed 64-bit integer. */
  readonly fencingToken: bigint;
  /** The effective ttl in ms: shown by the handle, sent with the next renewal. */
  readonly ttl: number;
  /** ms of life at the server counted from `from`. Default `ttl`. Differs on session backends and for re-found grants. */
  readonly validFor?: number;
  /** When `validFor` starts, on `host.clock.now()`. Default: when core sent the request. Never later than that. */
  readonly from?: number;
}

/** Somebody else holds the lock, or waits for it before us. */
export interface Contended {
  readonly holder?: { readonly owner: string; readonly since?: Date };
  /** Our place in the queue, 1 is next. */
  readonly position?: number;
  /** ms after which another attempt is worth it whatever happens (the holder's ttl ends). A hint for the backend itself. */
  readonly retryAfter?: number;
}

/** The outcome for one grant of a renewal. */
export type Renewal =
  | {
      readonly renewed: true;
      /** The effective ttl in ms. */
      readonly ttl: number;
      /** As in {@link Grant}. */
      readonly validFor?: number;
      /** As in {@link Grant}. */
      readonly from?: number;
    }
  | {
      /** The server says that it is not ours. */
      readonly renewed: false;
      /** Default `superseded`. */
      readonly reason?: LostReason;
    }
  | {
      /** No answer for this one (a node of a cluster is away). */
      readonly renewed: 'unknown';
      readonly error: Error;
    };

/** One fact about a server, for people. */
export interface Diagnosis {
  readonly level: 'ok' | 'info' | 'warning' | 'danger';
  /** A stable, short key, such as `redis-eviction`. */
  readonly id: string;
  /** What is so. */
  readonly finding: string;
  /** What to do about it. */
  readonly advice?: string;
}

/** The type of a backend's option, for checking and for reading it from a URL's query. Durations arrive in ms. */
export type OptionType = 'string' | 'integer' | 'boolean' | 'duration' | 'object';

/** What `createBackend` is given: checked by core against the module's `options`. */
export interface BackendOptions {
  /** The URL without the parameters that are options; driver parameters stay in it. Absent when none was given. */
  readonly url?: string;
  /** 1 to 64 of `A-Z a-z 0-9 . _ -`. Default `holdfast`. */
  readonly prefix?: string;
  readonly [option: string]: unknown;
}

/** A backend's package as `connect()` sees it. */
export interface BackendModule {
  /** URL schemes without colon, such as `redis`, `rediss`. */
  readonly schemes: readonly string[];
  /** Options besides `url` and `prefix`, by name; others in the config or the URL are a `ConfigError`. */
  readonly options?: Readonly<Record<string, OptionType>>;
  /** URL parameters that the driver documents and that stay in the URL. */
  readonly driverParameters?: readonly string[];
  /** A new backend at each call: each is opened once, and closed for good. */
  createBackend(options: BackendOptions): LockBackend | Promise<LockBackend>;
}
