import {
  type BackendHost,
  type Capabilities,
  type Claim,
  type Contended,
  type Diagnosis,
  type Grant,
  isHoldfastError,
  type LockBackend,
  type LockState,
  MAX_DURATION,
  OwnerMap,
  type Renewal,
  systemClock,
} from '@holdfast/core';
import { Abandoned } from './connections.js';
import { Interest } from './interest.js';
import type { SqlSettings } from './options.js';
import { LIVENESS, type LockStore, REFRESH } from './store.js';
import { Sweeper } from './sweeper.js';
import { type Pacing, Waitlist } from './waitlist.js';

/** What a database is to the backend: its store, and how its waiters learn of their turn. */
export interface SqlDatabase {
  /** What it is as far as can be said without asking it. */
  readonly product: string;
  readonly store: LockStore;
  readonly pacing: Pacing;
}

/**
 * Locks in a SQL database: a row for each name, a table of waiters, and a sweeper. The store does what must be
 * atomic; here is what happens around it: who waits, who is woken, and that a clean-up comes after what it cleans.
 */
export class SqlBackend implements LockBackend {
  readonly prefix: string;
  readonly #database: SqlDatabase;
  readonly #settings: SqlSettings;
  /** Attempts that have not been answered yet, by owner: more than one where core has asked again meanwhile. */
  readonly #flights = new OwnerMap<Set<Flight>>();
  /** Owners of attempts whose outcome is unknown: they may yet reach the database. */
  readonly #doubtful = new Set<string>();
  #name: string;
  #closing: Promise<void> | undefined;
  #parts: { readonly waitlist: Waitlist; readonly sweeper: Sweeper } | undefined;

  constructor(database: SqlDatabase, settings: SqlSettings) {
    this.#name = database.product;
    this.prefix = settings.prefix;
    this.#database = database;
    this.#settings = settings;
  }

  /** The database in use, as detected: `sqlite`, `postgres`, `mariadb` or `mysql`. */
  get name(): string {
    return this.#name;
  }

  async open(host: BackendHost = standalone): Promise<Capabilities> {
    const { store, pacing } = this.#database;
    const report = (error: Error): void => host.report(error);
    const waitlist = new Waitlist(store, host.clock, pacing, () => store.pushes);
    const facts = await store.open({
      clock: host.clock,
      commandTimeout: host.commandTimeout,
      woken: (owner) => waitlist.wake(owner),
      disturbed: () => waitlist.disturb(),
      report,
    });
    this.#name = facts.product;
    const { sweepEvery: every, retention } = this.#settings;
    const sweeper = new Sweeper(store, host.clock, { product: facts.product, every, retention, report });
    this.#parts = { waitlist, sweeper };
    sweeper.start();
    return {
      fairness: 'fifo',
      wake: store.pushes ? 'push' : 'poll',
      expiry: 'server-ttl',
      consistency: 'single-node',
      crossProcess: facts.crossProcess,
      transferable: true,
      minHold: 'server',
      grace: LIVENESS + REFRESH,
      ttl: { min: 20, max: MAX_DURATION, granularity: 1 },
    };
  }

  async attempt(claim: Claim): Promise<Grant | Contended> {
    const { waitlist } = this.#opened();
    if (claim.queue) waitlist.expect(claim);
    const flight = this.#takeOff(claim.owner);
    try {
      const answer = await this.#database.store.attempt(claim, flight.interest);
      if ('fencingToken' in answer) waitlist.forget(claim);
      return answer;
    } catch (error) {
      const known = error instanceof Abandoned || isHoldfastError(error, 'BACKEND_REFUSED');
      if (!known) this.#doubtful.add(claim.owner);
      throw error;
    } finally {
      this.#land(claim.owner, flight);
    }
  }

  async awaitTurn(claim: Claim, contended: Contended, signal: AbortSignal): Promise<void> {
    await this.#opened().waitlist.wait(claim, contended, signal);
  }

  async renew(grants: readonly Grant[]): Promise<readonly Renewal[]> {
    this.#opened();
    return this.#database.store.renew(grants);
  }

  async extend(grant: Grant, ttl: number): Promise<Renewal> {
    const [renewal] = await this.renew([{ ...grant, ttl }]);
    return renewal ?? { renewed: false };
  }

  async release(claim: Claim, { keepFor = 0 }: { readonly keepFor?: number } = {}): Promise<boolean> {
    const { waitlist } = this.#opened();
    waitlist.forget(claim);
    await this.#landing(claim.owner);
    const late = this.#doubtful.has(claim.owner);
    const { freed, next } = await this.#database.store.release(claim, { keepFor, late });
    this.#doubtful.delete(claim.owner);
    if (next !== undefined) waitlist.wake(next);
    return freed;
  }

  letLapse(claim: Claim): void {
    this.#opened().waitlist.forget(claim);
    this.#doubtful.delete(claim.owner);
    this.#database.store.letLapse(claim);
  }

  async adopt(grant: Grant, newOwner: string): Promise<Grant | undefined> {
    this.#opened();
    const adopted = await this.#database.store.adopt(grant, newOwner);
    return adopted ? { ...grant, claim: { ...grant.claim, owner: newOwner } } : undefined;
  }

  async inspect(name: string): Promise<LockState> {
    this.#opened();
    return this.#database.store.inspect(name);
  }

  list(prefix = ''): AsyncIterable<LockState> {
    this.#opened();
    return this.#database.store.list(prefix);
  }

  async forceRelease(name: string, expected?: bigint): Promise<boolean> {
    const { waitlist } = this.#opened();
    const { freed, next } = await this.#database.store.forceRelease(name, expected);
    if (next !== undefined) waitlist.wake(next);
    return freed;
  }

  wasForced(name: string, token: bigint): Promise<boolean> {
    this.#opened();
    return this.#database.store.wasForced(name, token);
  }

  diagnose(): Promise<readonly Diagnosis[]> {
    this.#opened();
    return this.#database.store.diagnose();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#parts?.waitlist.close();
    await this.#parts?.sweeper.stop();
    await this.#database.store.close();
  }

  #takeOff(owner: string): Flight {
    const flight = new Flight();
    const flights = this.#flights.get(owner) ?? new Set();
    this.#flights.set(owner, flights.add(flight));
    return flight;
  }

  #land(owner: string, flight: Flight): void {
    const flights = this.#flights.get(owner);
    flights?.delete(flight);
    if (flights?.size === 0) this.#flights.delete(owner);
    flight.land();
  }

  /** Asks all attempts of the owner for an early end and waits for them. */
  async #landing(owner: string): Promise<void> {
    await Promise.all([...(this.#flights.get(owner) ?? [])].map((flight) => flight.landing()));
  }

  #opened(): { readonly waitlist: Waitlist; readonly sweeper: Sweeper } {
    if (this.#parts === undefined) throw new Error('this backend has not been opened');
    return this.#parts;
  }
}

/** An attempt on its way. */
class Flight {
  /** Lost when nobody wants the answer any more: what was not sent need not be. */
  readonly interest = new Interest();
  readonly #landed: Promise<void>;
  #land: () => void = () => {};

  constructor() {
    this.#landed = new Promise((resolve) => {
      this.#land = resolve;
    });
  }

  land(): void {
    this.#land();
  }

  /** Asks for an early end and waits for it. */
  landing(): Promise<void> {
    this.interest.lose();
    return this.#landed;
  }
}

/** Serves a backend that is opened without core. */
const standalone: BackendHost = {
  clock: systemClock,
  commandTimeout: 5000,
  lost: () => {},
  report: () => {},
};
