import type { Diagnosis, Grant, LockBackend } from './backend.js';
import { Breaking } from './breaking.js';
import { type Clock, systemClock } from './clock.js';
import { type Duration, parseDuration } from './duration.js';
import { Engine } from './engine.js';
import { InvalidArgumentError, LockLostError, UnsupportedError } from './errors.js';
import { Handle, type LockHandle } from './handle.js';
import { Hold, type HoldTerms } from './hold.js';
import { type DistributedLock, Lock, type LockContext, type LockOptions } from './lock.js';
import { checkName } from './names.js';
import { DEFAULT_REQUEST, type Request, resolveRequest } from './options.js';
import { newOwner } from './owner.js';
import { Reentry } from './reentry.js';
import { isToken, MAX_FENCE_OFFSET } from './token.js';
import { unpack } from './transfer.js';

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
  /** What the server's settings mean for locks, as `holdfast doctor` shows; empty where the backend has nothing to say. */
  diagnose(): Promise<readonly Diagnosis[]>;
  /** Listens; returns the function that stops listening. A listener that throws breaks nothing. */
  on<E extends keyof LockEvents>(event: E, listener: (event: LockEvents[E]) => void): () => void;
  /**
   * Stops acquisitions, releases every handle still held, closes the connections that it opened. It does not end the work
   * that goes on under those handles, nor abort their signals, which tell of loss: end the work first.
   */
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
  /** Added to every fencing token, for moving to another backend or restoring one: 0n to 2^62. Default 0n. */
  readonly fenceOffset?: bigint;
  /** Gives up an acquisition after this long without any answer from the backend. Default 60 s. */
  readonly unavailableAfter?: Duration;
  /** How long a single call to the backend may take. Default 5 s. */
  readonly commandTimeout?: Duration;
  /** Default `systemClock`. For tests and simulations. */
  readonly clock?: Clock;
}

/** Backends that have been opened: what is theirs (connection, subscriptions, timers) goes with the locks that opened them. */
const opened = new WeakSet<LockBackend>();

/**
 * Locks on a backend: opens and checks it first.
 *
 * @param backend an object of its own for each call: `close` closes it for good. To share a connection, give the same
 *   client to several backend objects
 * @throws BackendError when the backend cannot be reached or refuses; InvalidArgumentError
 */
export async function createLocks(backend: LockBackend, options: LocksOptions = {}): Promise<Locks> {
  const { fenceOffset = 0n, unavailableAfter = 60_000, commandTimeout = 5000, clock = systemClock } = options;
  if (typeof backend?.open !== 'function') {
    throw new InvalidArgumentError('backend', backend, 'a backend, such as memoryBackend()');
  }
  if (typeof fenceOffset !== 'bigint' || fenceOffset < 0n || fenceOffset > MAX_FENCE_OFFSET) {
    throw new InvalidArgumentError('fenceOffset', fenceOffset, 'a bigint from 0n to 2n ** 62n');
  }
  const settings = {
    fenceOffset,
    unavailableAfter: parseDuration(unavailableAfter, 'unavailableAfter'),
    commandTimeout: parseDuration(commandTimeout, 'commandTimeout'),
    clock,
  };
  const defaults = resolveRequest(options.defaults, DEFAULT_REQUEST);
  const engine = new Engine(unopened(backend), settings);
  await engine.open();
  return new BackendLocks(engine, defaults);
}

/** The object itself the first time, then its twin: what is opened twice is closed under the feet of one of both. */
function unopened(backend: LockBackend): LockBackend {
  const own = opened.has(backend) ? backend.twin?.() : backend;
  if (own === undefined) {
    throw new InvalidArgumentError(
      'backend',
      'one that was opened before',
      'a backend object of its own for each createLocks(), made anew for another try too; to share a connection, give the same client to several',
    );
  }
  opened.add(own);
  return own;
}

class BackendLocks implements Locks {
  readonly backend: Locks['backend'];
  readonly #engine: Engine;
  readonly #context: LockContext;
  readonly #defaults: Request;
  #closed: Promise<void> | undefined;

  constructor(engine: Engine, defaults: Request) {
    this.#engine = engine;
    this.#defaults = defaults;
    this.#context = { engine, reentry: new Reentry(), warned: false };
    this.backend = Object.freeze({
      name: engine.backend.name,
      capabilities: Object.freeze(engine.capabilities),
    });
  }

  lock(name: string, defaults?: LockOptions): DistributedLock {
    checkName(name);
    return new Lock(this.#context, name, resolveRequest(defaults, this.#defaults));
  }

  async adopt(serialized: string): Promise<LockHandle> {
    const engine = this.#engine;
    engine.assertOpen();
    const { grant, terms } = unpack(engine.backend, serialized, engine.clock.wall());
    const { name } = grant.claim;
    if (!engine.capabilities.transferable) {
      throw new UnsupportedError(
        `${engine.backend.name} cannot adopt lock ${JSON.stringify(name)} from another process`,
        {
          lockName: name,
        },
      );
    }
    const adoption = this.#adopt(grant, terms);
    // `close` waits for it: what it brings must not outlive the instance.
    engine.inBackground(
      adoption.then(
        () => undefined,
        () => undefined,
      ),
    );
    return adoption;
  }

  async #adopt(grant: Grant, terms: HoldTerms): Promise<LockHandle> {
    const engine = this.#engine;
    const { name } = grant.claim;
    const owner = newOwner();
    let sent = 0;
    try {
      const adopted = await engine.persist('adopt', name, () => {
        sent = engine.clock.now();
        return engine.backend.adopt(grant, owner);
      });
      if (adopted === undefined) {
        throw new LockLostError(name, 'superseded', { detail: 'it has gone, or somebody else adopted it' });
      }
      engine.assertOpen(name);
      const now = engine.clock.now();
      const hold = new Hold(engine, adopted, { sent, now }, terms);
      hold.start(now);
      hold.expire();
      if (hold.lostError !== undefined) throw hold.lostError;
      engine.emit('acquired', { name, owner, fencingToken: hold.fencingToken, waited: 0 });
      return new Handle(engine, hold);
    } catch (error) {
      // An adoption whose outcome stays unknown may have happened: nobody would renew or release it.
      if (!(error instanceof LockLostError)) engine.giveBack({ ...grant.claim, owner });
      throw error;
    }
  }

  async inspect(name: string): Promise<LockState> {
    checkName(name);
    this.#engine.assertOpen(name);
    return this.#shown(await this.#engine.persist('inspect', name, () => this.#engine.backend.inspect(name)));
  }

  async *list(filter: { readonly prefix?: string } = {}): AsyncGenerator<LockState, void, undefined> {
    this.#engine.assertOpen();
    const { prefix } = filter;
    // Half a surrogate pair begins no name.
    if (prefix !== undefined && !(typeof prefix === 'string' && prefix.isWellFormed())) {
      throw new InvalidArgumentError('prefix', prefix, 'the start of the names to list, well-formed text');
    }
    const states = this.#engine.backend.list(prefix)[Symbol.asyncIterator]();
    try {
      for (;;) {
        // Each step is a pending call, which the process must outlive.
        const { done, value } = await this.#engine.keepAlive(states.next());
        if (done === true) return;
        yield this.#shown(value);
      }
    } catch (error) {
      throw this.#engine.asError('list', undefined, error);
    } finally {
      await states.return?.();
    }
  }

  async forceRelease(name: string, expected?: { readonly fencingToken: bigint }): Promise<boolean> {
    checkName(name);
    this.#engine.assertOpen(name);
    const token = expected?.fencingToken;
    if (expected !== undefined && typeof token !== 'bigint') {
      throw new InvalidArgumentError('expected.fencingToken', token, 'a bigint');
    }
    const stored = token === undefined ? undefined : token - this.#engine.fenceOffset;
    // No hold has it, so there is nothing to ask; some backends could not even be asked.
    if (stored !== undefined && !isToken(stored)) return false;
    const breaking = new Breaking(this.#engine.backend, name, stored);
    return this.#engine.persist('force release', name, () => breaking.strike());
  }

  async diagnose(): Promise<readonly Diagnosis[]> {
    this.#engine.assertOpen();
    const { backend } = this.#engine;
    return this.#engine.persist('diagnose', undefined, async () => (await backend.diagnose?.()) ?? []);
  }

  on<E extends keyof LockEvents>(event: E, listener: (event: LockEvents[E]) => void): () => void {
    return this.#engine.events.on(event, listener);
  }

  close(): Promise<void> {
    this.#closed ??= this.#engine.close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** A state as callers see it: the token with its offset, and a `toJSON` that does not get in the way of comparing. */
  #shown(state: LockState): LockState {
    const { fencingToken } = state;
    const shown =
      fencingToken === undefined
        ? { ...state }
        : { ...state, fencingToken: fencingToken + this.#engine.fenceOffset };
    return Object.defineProperty(shown, 'toJSON', { value: () => stateToJSON(shown) });
  }
}

function stateToJSON(state: LockState): Record<string, unknown> {
  const { fencingToken } = state;
  return fencingToken === undefined ? { ...state } : { ...state, fencingToken: String(fencingToken) };
}
