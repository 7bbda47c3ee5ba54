import { unlimitListeners } from '#platform';
import type { BackendHost, Claim, LockBackend } from './backend.js';
import { type Clock, sleep, type Timer } from './clock.js';
import { Deadlines } from './deadlines.js';
import { BackendError, isHoldfastError, LocksClosedError } from './errors.js';
import { Events } from './events.js';
import type { Hold } from './hold.js';
import type { Capabilities, LockEvents } from './locks.js';
import { OwnerMap } from './owner-map.js';
import { backoff } from './retry.js';
import { SuspensionAwareClock } from './validity.js';
import { Watchdog } from './watchdog.js';

/** What the engine is made with: checked by `createLocks`. */
export interface EngineOptions {
  readonly fenceOffset: bigint;
  readonly unavailableAfter: number;
  readonly commandTimeout: number;
  readonly clock: Clock;
}

/** The share of the command timeout that one request may take, so that its outcome can be asked for again within it. */
const REQUEST_SHARE = 0.4;

/** Opening takes several requests, and many processes may open the same backend at once. */
const OPENING = 3;

/** A process must outlive its pending calls: one long timer is held while any is pending. */
const LONG = 2 ** 31 - 1;

/**
 * What the parts of one `Locks` share: the backend behind its deadlines, the clock, the events, the watchdog, and the
 * work that goes on in the background.
 */
export class Engine {
  readonly backend: LockBackend;
  readonly clock: Clock;
  readonly events = new Events();
  readonly watchdog: Watchdog;
  readonly fenceOffset: bigint;
  readonly unavailableAfter: number;
  readonly commandTimeout: number;
  /** How long one request may stay unanswered. */
  readonly requestTimeout: number;
  /** Holds by owner: the backend may report one lost, the watchdog looks after them, and `close` releases them. */
  readonly holds = new OwnerMap<Hold>();
  /** Those whose release is under way: over for their callers, not for `close`. */
  readonly leaving = new OwnerMap<Hold>();
  #closing = false;
  /** Whom `close` tells that it begins, by the owner of a claim. */
  readonly #waiting = new OwnerMap<() => void>();
  /** Aborts when `close` has given up on what is still running. */
  readonly #ended = new AbortController();
  readonly #background = new Set<Promise<void>>();
  readonly #deadlines: Deadlines;
  #capabilities: Capabilities | undefined;
  #pending = 0;
  #keepAlive: Timer | undefined;

  constructor(backend: LockBackend, options: EngineOptions) {
    this.backend = backend;
    this.clock = new SuspensionAwareClock(options.clock);
    this.fenceOffset = options.fenceOffset;
    this.unavailableAfter = options.unavailableAfter;
    this.commandTimeout = options.commandTimeout;
    this.requestTimeout = options.commandTimeout * REQUEST_SHARE;
    this.watchdog = new Watchdog(this);
    this.#deadlines = new Deadlines(this.clock);
    unlimitListeners(this.#ended.signal);
  }

  async open(): Promise<void> {
    const host: BackendHost = {
      clock: this.clock,
      commandTimeout: this.requestTimeout,
      lost: (owner, reason, cause) => this.holds.get(owner)?.lose(reason, cause),
      report: (error) => this.report(error),
    };
    try {
      this.#capabilities = await this.call(
        'open',
        undefined,
        () => this.backend.open(host),
        this.commandTimeout * OPENING,
      );
    } catch (error) {
      // Whatever was opened before the refusal is closed again; the refusal is what the caller should hear.
      await this.call('close', undefined, () => this.backend.close()).catch(() => undefined);
      throw error;
    }
  }

  get capabilities(): Capabilities {
    if (this.#capabilities === undefined) throw new Error('the backend has not been opened');
    return this.#capabilities;
  }

  assertOpen(lockName?: string): void {
    if (this.#closing) throw new LocksClosedError(lockName);
  }

  /**
   * One request to the backend, with its deadline. A late answer is ignored; every failure is a `HoldfastError`.
   *
   * @param now for callers who have just looked
   */
  call<T>(
    what: string,
    lockName: string | undefined,
    request: () => Promise<T>,
    timeout = this.requestTimeout,
    now?: number,
  ): Promise<T> {
    // Sent first: what is done from here on, the server need not wait for.
    const answer = invoke(request);
    return new Promise<T>((resolve, reject) => {
      const late = (): void => reject(this.#unanswered(what, lockName, timeout));
      // It also keeps the process alive until the call has settled. What comes after it settles nothing any more.
      const deadline = this.#deadlines.set(timeout, late, now);
      answer.then(
        (value) => {
          this.#deadlines.lift(deadline);
          resolve(value);
        },
        (error: unknown) => {
          this.#deadlines.lift(deadline);
          reject(this.asError(what, lockName, error));
        },
      );
    });
  }

  /**
   * Asks until there is an answer: transient failures are retried with backoff and jitter within the command timeout.
   * The request must be idempotent.
   *
   * @param now for callers who have just looked
   */
  persist<T>(
    what: string,
    lockName: string | undefined,
    request: () => Promise<T>,
    now = this.clock.now(),
  ): Promise<T> {
    return this.call(what, lockName, request, this.requestTimeout, now).catch((failure: unknown) => {
      const deadline = now + this.commandTimeout;
      const again = (): Promise<T> => {
        const left = Math.max(1, deadline - this.clock.now());
        return this.call(what, lockName, request, Math.min(this.requestTimeout, left));
      };
      return this.#persist(again, deadline, failure);
    });
  }

  /** The first try has failed. */
  async #persist<T>(again: () => Promise<T>, deadline: number, failure: unknown): Promise<T> {
    let error = failure;
    for (let failures = 0; ; failures++) {
      const pause = backoff(failures);
      if (!isTransient(error) || this.clock.now() + pause >= deadline || this.#ended.signal.aborted)
        throw error;
      await sleep(this.clock, pause, this.#ended.signal, { keepAlive: true });
      try {
        return await again();
      } catch (next) {
        error = next;
      }
    }
  }

  /**
   * Gives a claim back that nobody waits for any more, for certain: until the backend has answered, or the server has
   * let it lapse by itself. The first tries keep the process alive, the later ones do not.
   */
  giveBack(claim: Claim, options?: { readonly keepFor?: number }): void {
    const lapsesAt = this.clock.now() + Math.max(claim.ttl, this.capabilities.grace) + this.commandTimeout;
    this.inBackground(this.#giveBackUntil(claim, lapsesAt, options));
  }

  async #giveBackUntil(
    claim: Claim,
    lapsesAt: number,
    options?: { readonly keepFor?: number },
  ): Promise<void> {
    const started = this.clock.now();
    for (let failures = 0; !this.#ended.signal.aborted; failures++) {
      try {
        await this.call('release', claim.name, () => this.backend.release(claim, options));
        return;
      } catch (error) {
        const pause = backoff(failures, 10_000);
        const now = this.clock.now();
        if (failures === 0) this.report(error as Error, claim);
        if (now + pause > lapsesAt) {
          this.backend.letLapse?.(claim);
          return;
        }
        await sleep(this.clock, pause, this.#ended.signal, {
          keepAlive: now - started < this.commandTimeout,
        });
      }
    }
  }

  /** Owns a piece of work that no caller waits for: `close` waits for it, and its failure becomes event `error`. */
  inBackground(work: Promise<void>): void {
    const owned = work
      .catch((error: unknown) => this.report(error as Error))
      .finally(() => this.#background.delete(owned));
    this.#background.add(owned);
  }

  /** Runs `onClose` when `close` begins, unless the returned function was called before. */
  whenClosing(owner: string, onClose: () => void): () => void {
    this.#waiting.set(owner, onClose);
    return () => void this.#waiting.delete(owner);
  }

  /** Keeps the process alive while the work waits for something that does not, such as a message. */
  async keepAlive<T>(work: Promise<T>): Promise<T> {
    if (this.#pending++ === 0) {
      this.#keepAlive = this.clock.setTimer(LONG, () => undefined, { keepAlive: true });
    }
    try {
      return await work;
    } finally {
      if (--this.#pending === 0) this.#keepAlive?.cancel();
    }
  }

  emit<E extends keyof LockEvents>(event: E, details: Omit<LockEvents[E], 'at'>): void {
    if (this.events.wanted(event)) this.events.emit(event, new Date(this.clock.wall()), details);
  }

  report(error: Error, claim?: { readonly name: string; readonly owner: string }): void {
    this.emit('error', claim === undefined ? { error } : { error, name: claim.name, owner: claim.owner });
  }

  /**
   * Stops acquisitions, gives every hold back, and lets the background and the releases under way finish, all within the
   * command timeout; closes.
   */
  async close(): Promise<void> {
    this.#closing = true;
    const deadline = this.clock.now() + this.commandTimeout;
    for (const onClose of this.#waiting.values()) onClose();
    await Promise.all(this.holds.values().map((hold) => hold.releaseOnClose()));
    await this.#drain(deadline - this.clock.now());
    this.#ended.abort();
    this.watchdog.stop();
    try {
      await this.call('close', undefined, () => this.backend.close(), this.commandTimeout);
    } catch (error) {
      this.report(error as Error);
    }
    this.#deadlines.stop();
  }

  async #drain(timeout: number): Promise<void> {
    const patience = new AbortController();
    const limit = sleep(this.clock, Math.max(0, timeout), patience.signal, { keepAlive: true });
    const done = (async () => {
      while (this.#background.size + this.leaving.size > 0) {
        await Promise.all([...this.#background, ...this.leaving.values().map((hold) => hold.left())]);
      }
    })();
    await Promise.race([done, limit]);
    patience.abort();
  }

  /** The backend's errors are ours already; anything else is a fault of the client or the server, with itself as cause. */
  asError(what: string, lockName: string | undefined, error: unknown): Error {
    if (error instanceof BackendError && error.lockName === undefined && lockName !== undefined) {
      const { code, cause, transient } = error;
      const message = `${error.message} (${what} of lock ${JSON.stringify(lockName)})`;
      return new BackendError(code, message, { lockName, cause, transient });
    }
    if (isHoldfastError(error)) return error;
    const about = lockName === undefined ? '' : ` of lock ${JSON.stringify(lockName)}`;
    const said = error instanceof Error ? error.message : String(error);
    return new BackendError('BACKEND_UNAVAILABLE', `${this.backend.name}: ${what}${about} failed: ${said}`, {
      lockName,
      cause: error,
    });
  }

  #unanswered(what: string, lockName: string | undefined, timeout: number): BackendError {
    const about = lockName === undefined ? '' : ` of lock ${JSON.stringify(lockName)}`;
    return new BackendError(
      'BACKEND_UNAVAILABLE',
      `${this.backend.name}: no answer to ${what}${about} within ${Math.round(timeout)} ms; check that the server is reachable`,
      { lockName },
    );
  }
}

/** Asking again may help. */
export function isTransient(error: unknown): boolean {
  return (
    isHoldfastError(error, 'BACKEND_UNAVAILABLE') || (error as { transient?: unknown }).transient === true
  );
}

/** A backend that throws instead of rejecting is treated alike. */
function invoke<T>(request: () => Promise<T>): Promise<T> {
  try {
    return Promise.resolve(request());
  } catch (error) {
    return Promise.reject(error);
  }
}
