import { warn } from '#platform';
import { Acquisition, type Refusal } from './acquisition.js';
import type { Duration } from './duration.js';
import type { Engine } from './engine.js';
import { InvalidArgumentError, LockLostError } from './errors.js';
import { Handle, type LockHandle } from './handle.js';
import type { Hold } from './hold.js';
import { type Request, resolveRequest } from './options.js';
import type { Reentry } from './reentry.js';

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
  /**
   * Inside `run`'s callback, acquiring the same name again returns at once. Needed on both calls. Default false.
   *
   * It stays one lock: the inner call may lengthen its ttl and its `minHold` (counted from the grant), and a `maxHold` of
   * its own, counted from the inner call, ends the whole hold if it comes before the inner release. `renew` and `metadata`
   * are those of the outer call.
   */
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

/** What the locks of one `Locks` share besides the engine. */
export interface LockContext {
  readonly engine: Engine;
  readonly reentry: Reentry;
  /** A certain deadlock was warned of: once is enough. */
  warned: boolean;
}

/** A named lock on an engine. */
export class Lock implements DistributedLock {
  readonly name: string;
  readonly #context: LockContext;
  readonly #defaults: Request;

  constructor(context: LockContext, name: string, defaults: Request) {
    this.#context = context;
    this.name = name;
    this.#defaults = defaults;
  }

  async acquire(options?: AcquireOptions): Promise<LockHandle> {
    return granted(await this.#take(resolveRequest(options, this.#defaults), 'wait'));
  }

  async tryAcquire(options?: Omit<AcquireOptions, 'wait'>): Promise<LockHandle | null> {
    return this.#take(this.#asTry(options), 'try');
  }

  async run<T>(work: (hold: LockHandle) => T | Promise<T>, options?: AcquireOptions): Promise<T> {
    checkWork(work);
    const request = resolveRequest(options, this.#defaults);
    return this.#runInside(granted(await this.#take(request, 'wait')), request, work);
  }

  async tryRun<T>(
    work: (hold: LockHandle) => T | Promise<T>,
    options?: Omit<AcquireOptions, 'wait'>,
  ): Promise<{ acquired: true; value: T } | { acquired: false }> {
    checkWork(work);
    const request = this.#asTry(options);
    const handle = await this.#take(request, 'try');
    if (handle === null) return { acquired: false };
    return { acquired: true, value: await this.#runInside(handle, request, work) };
  }

  #asTry(options: Omit<AcquireOptions, 'wait'> | undefined): Request {
    return { ...resolveRequest(options, this.#defaults), wait: 0 };
  }

  /** Throws at once what can be known at once: its callers are asynchronous. */
  #take(request: Request, refusal: Refusal): Promise<Handle | null> {
    const { engine, reentry } = this.#context;
    engine.assertOpen(this.name);
    request.signal?.throwIfAborted();
    const inside = reentry.find(this.name);
    if (inside !== undefined) {
      if (request.reentrant && inside.reentrant) return this.#reenter(inside.hold, request);
      if (request.wait === Infinity) this.#warnOfDeadlock();
    }
    return new Acquisition(engine, this.name, request, refusal).run();
  }

  /**
   * The holder takes it once more: counted, with the same owner and token. It may lengthen the ttl and the tail, never
   * shorten them; a `maxHold` of its own limits the hold while this handle lives.
   */
  async #reenter(hold: Hold, request: Request): Promise<Handle> {
    hold.assertOurs();
    const { engine } = this.#context;
    const handle = new Handle(engine, hold, engine.clock.now() + request.maxHold);
    try {
      if (request.ttlGiven && request.ttl > hold.ttl) await hold.extend(request.ttl);
      hold.leaveAtLeast(request.minHold);
      return handle;
    } catch (error) {
      await handle[Symbol.asyncDispose]();
      throw error;
    }
  }

  #warnOfDeadlock(): void {
    if (this.#context.warned) return;
    this.#context.warned = true;
    warn(
      `lock ${JSON.stringify(this.name)} is waited for without limit inside its own run(): this can never be granted. ` +
        'Pass { reentrant: true } to both, or a wait.',
    );
  }

  /** The work's own error comes first; then a lock that was lost, even though the work returned; then the value. */
  async #runInside<T>(
    handle: Handle,
    request: Request,
    work: (hold: LockHandle) => T | Promise<T>,
  ): Promise<T> {
    let value: T;
    try {
      value = await this.#context.reentry.run(handle.hold, request.reentrant, () => work(handle));
    } catch (error) {
      await handle[Symbol.asyncDispose]();
      throw error;
    }
    if (handle.hold.lostError === undefined && handle.released) return value;
    try {
      if (await handle.release()) return value;
    } catch (error) {
      this.#context.engine.report(error as Error, handle.hold.claim);
      return value;
    }
    throw (
      handle.hold.lostError ??
      new LockLostError(this.name, 'superseded', { detail: 'it was gone at release' })
    );
  }
}

/** A refused acquisition that waits rejects; only a try is told with null. */
function granted(handle: Handle | null): Handle {
  if (handle === null) throw new Error('an acquisition that waits ended without an answer');
  return handle;
}

/** Before anything is sent: a lock is not taken for work that cannot be done. */
function checkWork(work: unknown): void {
  if (typeof work !== 'function') throw new InvalidArgumentError('work', work, 'a function');
}
