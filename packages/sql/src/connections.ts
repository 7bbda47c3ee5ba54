import { BackendError, type Clock, Deadlines, sleep } from '@holdfast/core';
import type { Interest } from './interest.js';
import { type Rank, Turnstile } from './turnstile.js';
import { within } from './within.js';

/** Where connections come from: a pool of our own, or one that was handed in. */
export interface ConnectionPool<C> {
  /** Connections that we may have at once. */
  readonly most: number;
  acquire(): Promise<C>;
  /** With `broken`, the connection is closed and not used again. */
  release(connection: C, broken: boolean): void;
  /** Closes what we opened ourselves. */
  close(): Promise<void>;
}

/** What an error of the driver means for the work that met it. */
export type Fault =
  /** Nothing happened, and the same again may succeed at once: a deadlock, a serialization failure, a lock timeout. */
  | { readonly kind: 'again' }
  /** As `again`, on this connection, in another way: the server has forgotten our prepared statements. */
  | { readonly kind: 'unprepared' }
  | { readonly kind: 'read-only'; readonly error: (permanent: boolean) => BackendError }
  | { readonly kind: 'failed'; readonly error: BackendError; readonly broken: boolean };

type Outcome = Exclude<Fault, { readonly kind: 'read-only' }>;

/** The limits of one call. */
export interface Call {
  /** ms */
  readonly timeout: number;
  /** On the clock's `now`. */
  readonly deadline: number;
  /** Lost when nobody wants the answer any more. A statement that has been sent is waited for all the same. */
  readonly interest: Interest | undefined;
  /** Goes before what is not: a crowd that wants a lock must not stand before whoever gives it back, or keeps one. */
  readonly urgent: boolean;
  /**
   * It has had a connection. Then it goes before those that have not: of a crowd whose calls take two statements each,
   * nobody would be through before all have sent the first, and everybody's time might be over by then.
   */
  begun: boolean;
}

/** Nobody wanted it any more, and it has not happened. */
export class Abandoned extends Error {}

/**
 * Lends a connection for one statement, or a few that need no transaction, with a deadline. Nobody keeps one between
 * statements: whoever waits for a lock must not starve who holds it.
 */
export class Connections<C extends object> {
  readonly #pool: ConnectionPool<C>;
  readonly #classify: (error: unknown) => Fault;
  readonly #clock: Clock;
  readonly #deadlines: Deadlines;
  readonly #timeout: number;
  readonly #label: string;
  readonly #unprepared: () => void;
  readonly #turnstile: Turnstile;
  readonly #since = new WeakMap<C, number>();
  #readOnlySince: number | undefined;

  constructor(options: {
    readonly pool: ConnectionPool<C>;
    readonly classify: (error: unknown) => Fault;
    readonly clock: Clock;
    /** ms that one call may take in all. */
    readonly timeout: number;
    /** For messages: the server, without credentials. */
    readonly label: string;
    /** Called when the server has forgotten a prepared statement. */
    readonly unprepared: () => void;
  }) {
    this.#pool = options.pool;
    this.#turnstile = new Turnstile(options.pool.most);
    this.#classify = options.classify;
    this.#clock = options.clock;
    this.#deadlines = new Deadlines(options.clock, { keepAlive: false });
    this.#timeout = options.timeout;
    this.#label = options.label;
    this.#unprepared = options.unprepared;
  }

  /** The limits of a call that begins now, however many statements it takes. With an interest it is not urgent. */
  begin(interest?: Interest, timeout = this.#timeout): Call {
    const deadline = this.#clock.now() + timeout;
    return { deadline, timeout, interest, urgent: interest === undefined, begun: false };
  }

  /**
   * @throws BackendError; the outcome is unknown where it is transient
   * @throws Abandoned when nobody wants the call any more; this piece of work has not happened then
   */
  async use<T>(work: (connection: C) => Promise<T>, call: Call = this.begin()): Promise<T> {
    for (let tries = 0; ; tries++) {
      if (call.interest?.lost) throw new Abandoned();
      const outcome = await this.#once(work, call);
      if (outcome.kind === 'done') return outcome.value;
      if (outcome.kind === 'failed') throw outcome.error;
      if (this.#clock.now() >= call.deadline)
        throw this.#late('stayed busy with conflicting transactions', call);
      if (outcome.kind === 'unprepared') this.#unprepared();
      else await sleep(this.#clock, Math.random() * Math.min(5 * 2 ** tries, 200), call.interest?.signal);
    }
  }

  close(): Promise<void> {
    this.#deadlines.stop();
    return this.#pool.close();
  }

  async #once<T>(
    work: (connection: C) => Promise<T>,
    call: Call,
  ): Promise<{ readonly kind: 'done'; readonly value: T } | Outcome> {
    let connection: C;
    try {
      connection = await this.#acquire(call);
    } catch (error) {
      return this.#fault(error, undefined, call);
    }
    call.begun = true;
    if (!this.#since.has(connection)) this.#since.set(connection, this.#clock.now());
    let broken = true;
    try {
      const answered = Math.max(call.deadline, this.#clock.now() + call.timeout * ANSWERING);
      const value = await this.#within(answered, work(connection), 'did not answer');
      broken = false;
      this.#readOnlySince = undefined;
      return { kind: 'done', value };
    } catch (error) {
      const fault = this.#fault(error, connection, call);
      broken = fault.kind === 'failed' && fault.broken;
      return fault;
    } finally {
      this.#giveBack(connection, broken);
    }
  }

  async #acquire(call: Call): Promise<C> {
    const arriving = this.#arrive(call);
    try {
      const least = call.timeout * ARRIVING;
      const arrived = Math.max(call.deadline - least, this.#clock.now() + least);
      return await this.#within(arrived, arriving, 'gave no connection (is its pool used up?)');
    } catch (error) {
      // It may still arrive, when nobody waits for it any more.
      arriving.then(
        (connection) => this.#giveBack(connection, false),
        () => {},
      );
      throw error;
    }
  }

  async #arrive(call: Call): Promise<C> {
    await this.#turnstile.enter(rankOf(call));
    try {
      return await this.#pool.acquire();
    } catch (error) {
      this.#turnstile.leave();
      throw error;
    }
  }

  #giveBack(connection: C, broken: boolean): void {
    this.#pool.release(connection, broken);
    this.#turnstile.leave();
  }

  /** A server that is read-only on a connection made after it was first seen so will stay so for now. */
  #fault(error: unknown, connection: C | undefined, call: Call): Outcome {
    if (error instanceof Late)
      return { kind: 'failed', error: this.#late(error.message, call), broken: true };
    const fault = this.#classify(error);
    if (fault.kind !== 'read-only') return fault;
    const born = connection === undefined ? Number.POSITIVE_INFINITY : (this.#since.get(connection) ?? 0);
    const permanent = this.#readOnlySince !== undefined && born > this.#readOnlySince;
    this.#readOnlySince ??= this.#clock.now();
    return { kind: 'failed', error: fault.error(permanent), broken: true };
  }

  #late(what: string, { timeout }: Call): BackendError {
    return new BackendError('BACKEND_UNAVAILABLE', `${this.#label} ${what} within ${timeout} ms`);
  }

  #within<T>(deadline: number, promise: Promise<T>, what: string): Promise<T> {
    return within(this.#deadlines, deadline - this.#clock.now(), promise, () => new Late(what));
  }
}

function rankOf({ urgent, begun }: Call): Rank {
  if (urgent) return begun ? 0 : 1;
  return begun ? 2 : 3;
}

/** The share of a call's timeout that a connection has to come, whatever is left of the call. */
const ARRIVING = 0.25;

/**
 * The share that a statement has for its answer, whatever is left of the call: a connection that came late, and was
 * closed because the rest of the time did not do, would have to be made anew, which makes the others late in their turn.
 */
const ANSWERING = 0.5;

class Late extends Error {}
