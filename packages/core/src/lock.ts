import type { Duration } from './duration.js';
import type { LockHandle } from './handle.js';

/** How a lock is held. Given to `locks.lock(name, …)` as defaults, and to each acquisition. */
export interface LockOptions {
  /** How long a dead holder can block others. Default 30 s; at most 365 days. */
  readonly ttl?: Duration;
  /** The watchdog keeps extending until release, loss or `maxHold`. Default true. */
  readonly renew?: boolean;
  /** The hold ends here, however long the work takes. Default none. */
  readonly maxHold?: Duration;
  /** After release the name stays taken until this long after acquisition. Default none. */
  readonly minHold?: Duration;
  /** Inside `run`'s callback, acquiring the same name again returns at once. Needed on both calls. Default false. */
  readonly reentrant?: boolean;
  /** Up to 1 KiB of UTF-8, shown by `inspect()`. */
  readonly metadata?: string;
}

/** How a lock is acquired. */
export interface AcquireOptions extends LockOptions {
  /** How long to wait for others: default `Infinity`; 0 is one attempt. */
  readonly wait?: Duration;
  /** Governs the acquisition only: once the lock is held, aborting it changes nothing. */
  readonly signal?: AbortSignal;
}

/** A named lock. Creating one costs nothing; only acquiring asks the backend. */
export interface DistributedLock {
  readonly name: string;
  /**
   * Waits its turn and takes the lock.
   *
   * @throws LockTimeoutError when `wait` ran out while others held or waited
   * @throws BackendError when the backend cannot be reached until then, or refuses
   * @throws LocksClosedError, InvalidArgumentError, or the signal's own reason
   */
  acquire(options?: AcquireOptions): Promise<LockHandle>;
  /** Takes the lock if nobody holds it or waits for it; null otherwise. */
  tryAcquire(options?: Omit<AcquireOptions, 'wait'>): Promise<LockHandle | null>;
  /**
   * Waits its turn, runs the work, releases.
   *
   * @throws the work's own error if it threw; LockLostError if the lock was lost while the work ran; else as `acquire`
   */
  run<T>(work: (hold: LockHandle) => T | Promise<T>, options?: AcquireOptions): Promise<T>;
  /** As `run`, without waiting for another holder. */
  tryRun<T>(
    work: (hold: LockHandle) => T | Promise<T>,
    options?: Omit<AcquireOptions, 'wait'>,
  ): Promise<{ acquired: true; value: T } | { acquired: false }>;
}
