import type { Claim, Clock, Diagnosis, Grant, LockState, Renewal } from '@holdfast/core';
import { Batches } from './batches.js';
import type { Connections } from './connections.js';
import type { Interest } from './interest.js';
import { Keys } from './key.js';
import { Places } from './places.js';
import type { Freed, LockStore, Outlook, Place, Refusal, StoreFacts, StoreSession } from './store.js';

/** A row's name: the digest that it is found by, and what the digest was made from. */
export interface Key {
  readonly id: Buffer;
  readonly prefix: string;
  readonly name: string;
}

/** The answer to a take. */
export type Taken =
  | { readonly granted: true; readonly fencingToken: bigint }
  /** How things stand, where the statement could tell. */
  | { readonly granted: false; readonly refusal?: Refusal };

/** One page of a listing, and where the next begins. */
export interface Page {
  readonly states: readonly LockState[];
  readonly after: Buffer | undefined;
}

/**
 * What a database server is asked. Each method is one statement that commits by itself, unless it says otherwise: a
 * transaction that is cut off between two statements would keep its row locks, and everybody would wait for a client
 * that has gone.
 */
export interface ServerDialect<C> {
  /** Which server is this, and can it be used? */
  detect(connection: C): Promise<string>;
  /** Brings the schema up to date, safely when many do so at once. A transaction, or a named lock. */
  migrate(connection: C): Promise<void>;
  /** Rejects as any use of it would when the schema is missing. */
  probe(connection: C): Promise<void>;

  /**
   * Takes the lock under the rules of the store, and removes the owner's place when it does.
   *
   * With a ticket, the row is marked as queued for: a release that comes later finds the mark on the newest version
   * of the row, whatever its snapshot of the waiters shows.
   */
  take(connection: C, key: Key, claim: Claim, place: Standing): Promise<Taken>;
  /** How things stand for an owner that was refused. */
  refusal(connection: C, key: Key, owner: string): Promise<Refusal>;
  /** Joins the queue and answers the ticket. */
  enqueue(connection: C, key: Key, owner: string, place: Standing): Promise<number>;
  /** Removes the owner's place and refuses it from now on: an attempt of its may still be under way. */
  bury(connection: C, key: Key, owner: string): Promise<void>;
  /** Removes the owner's place, then frees the row if it is the owner's. */
  free(
    connection: C,
    key: Key,
    owner: string,
    options: { keepFor: number; placed: boolean },
  ): Promise<FreedRow>;
  /** As `free`, for many owners that have no place, in their order. */
  freeMany(
    connection: C,
    claims: readonly { readonly key: Key; readonly owner: string }[],
  ): Promise<readonly FreedRow[]>;
  force(connection: C, key: Key, expected: bigint | undefined): Promise<FreedRow>;
  /**
   * Where the lock is free, tells the head of its queue and answers it. Must come after what freed the lock has been
   * committed. Where nobody waits, takes the mark away again, unless somebody has joined since.
   */
  wake(connection: C, key: Key, mark: number): Promise<string | undefined>;

  /** For each grant, whether it was renewed. */
  renew(connection: C, grants: readonly KeyedGrant[]): Promise<readonly boolean[]>;
  wasForced(connection: C, grants: readonly KeyedGrant[]): Promise<readonly boolean[]>;
  adopt(connection: C, grant: KeyedGrant, newOwner: string): Promise<boolean>;
  inspect(connection: C, key: Key): Promise<LockState>;
  list(connection: C, prefix: string, start: string, after: Buffer): Promise<Page>;
  /** Answers the owners whose place is alive, and is kept alive by this. */
  refresh(
    connection: C,
    places: readonly { readonly key: Key; readonly owner: string }[],
  ): Promise<ReadonlySet<string>>;
  peek(
    connection: C,
    places: readonly { readonly key: Key; readonly ticket: number }[],
  ): Promise<readonly Outlook[]>;
  sweep(connection: C, prefix: string, retention: number, limit: number): Promise<number>;
  /** What the server's settings mean for locks. `pushes`: messages about turns arrive at present. */
  diagnose(
    connection: C,
    present: { readonly clock: Clock; readonly pushes: boolean },
  ): Promise<readonly Diagnosis[]>;
}

/** What is known of an owner's place: it may have one; if so, perhaps under this ticket. */
export interface Standing {
  readonly placed: boolean;
  readonly ticket?: number;
}

export interface FreedRow {
  readonly freed: boolean;
  /** The newest ticket that a take has marked the row with: 0 when nobody can be waiting. */
  readonly mark: number;
}

export interface KeyedGrant {
  readonly key: Key;
  readonly owner: string;
  readonly fencingToken: bigint;
  /** ms */
  readonly ttl: number;
}

type Question<C, T> = (connection: C, dialect: ServerDialect<C>) => Promise<T>;

/** Messages about turns, where the database has them. */
export interface Wakeups {
  readonly active: boolean;
  /** Resolves when it is known whether messages arrive, but after `limit` ms at the latest. */
  start(limit: number): Promise<void>;
  stop(): void;
}

/** What a store on a server is made of. */
export interface ServerParts<C extends object> {
  readonly connections: Connections<C>;
  readonly dialect: ServerDialect<C>;
  readonly wakeups?: Wakeups;
}

export interface ServerStoreOptions<C extends object> {
  readonly prefix: string;
  readonly migrate: boolean;
  readonly connect: (session: StoreSession) => Promise<ServerParts<C>>;
}

/** An attempt that was given up may still reach the server, but not after this long, ms: TCP gives up sooner. */
export const LATEST = 60 * 60 * 1000;

/** ms that opening may take at least: it connects, and may change the schema. */
const OPENING = 5000;

/** Locks on a database server: the order of statements that makes them right, the same for every dialect. */
export class ServerStore<C extends object> implements LockStore {
  readonly #options: ServerStoreOptions<C>;
  readonly #keys: Keys;
  readonly #places = new Places();
  #open: (ServerParts<C> & { readonly clock: Clock; readonly late: number }) | undefined;
  readonly #buried = new Set<() => void>();
  /** Many that end together, as those of a job that ends, or of a process, must not stand in line for a connection. */
  readonly #endings = new Batches<{ readonly key: Key; readonly owner: string }, FreedRow>(async (claims) => {
    const [first] = claims;
    return this.#ask(async (c, d) =>
      first !== undefined && claims.length === 1
        ? [await d.free(c, first.key, first.owner, { keepFor: 0, placed: false })]
        : d.freeMany(c, claims),
    );
  });

  constructor(options: ServerStoreOptions<C>) {
    this.#options = options;
    this.#keys = new Keys(options.prefix);
  }

  get pushes(): boolean {
    return this.#open?.wakeups?.active === true;
  }

  async open(session: StoreSession): Promise<StoreFacts> {
    const parts = await this.#options.connect(session);
    this.#open = { ...parts, clock: session.clock, late: session.commandTimeout };
    const { connections, dialect, wakeups } = parts;
    const call = connections.begin(undefined, Math.max(OPENING, session.commandTimeout));
    const messages = wakeups?.start(session.commandTimeout * 2);
    try {
      const product = await connections.use((connection) => dialect.detect(connection), call);
      if (this.#options.migrate) await connections.use((connection) => dialect.migrate(connection), call);
      await connections.use((connection) => dialect.probe(connection), call);
      await messages;
      return { product, crossProcess: true };
    } catch (error) {
      wakeups?.stop();
      throw error;
    }
  }

  async close(): Promise<void> {
    for (const cancel of this.#buried) cancel();
    this.#open?.wakeups?.stop();
    await this.#open?.connections.close();
  }

  /**
   * Take; enqueue; take again, since the lock may have been freed in between by somebody who saw no waiter. Where others
   * of this instance wait already, the first take would be refused, and is left out.
   */
  async attempt(claim: Claim, interest: Interest): Promise<Grant | Refusal> {
    const key = this.#key(claim.name);
    const { owner } = claim;
    const ask = this.#asker(interest);
    const known = this.#places.get(owner);
    const placed = known !== undefined;
    if (placed || !claim.queue || !this.#places.crowded(claim.name)) {
      const first = await ask((c, d) => d.take(c, key, claim, { placed, ...known }));
      if (first.granted) return this.#granted(claim, first.fencingToken);
      if (!claim.queue || placed) {
        const refusal = first.refusal ?? (await ask((c, d) => d.refusal(c, key, owner)));
        // A place with another ticket than the row was marked with is not complete yet: an earlier try was cut off.
        if (!claim.queue || (refusal.ticket !== undefined && refusal.ticket === known?.ticket))
          return refusal;
      }
    }
    const place = this.#places.add(owner, claim.name);
    const ticket = await ask((c, d) => d.enqueue(c, key, owner, { placed }));
    const second = await ask((c, d) => d.take(c, key, claim, { placed: true, ticket }));
    if (second.granted) return this.#granted(claim, second.fencingToken);
    place.ticket = ticket;
    return { ...(second.refusal ?? (await ask((c, d) => d.refusal(c, key, owner)))), ticket };
  }

  #granted(claim: Claim, fencingToken: bigint): Grant {
    this.#places.delete(claim.owner);
    return { claim, fencingToken, ttl: claim.ttl };
  }

  async renew(grants: readonly Grant[]): Promise<readonly Renewal[]> {
    const ask = this.#asker();
    const keyed = grants.map((grant) => this.#keyed(grant));
    const renewed = await ask((c, d) => d.renew(c, keyed));
    const lost = keyed.filter((_grant, index) => renewed[index] !== true);
    const forced = lost.length === 0 ? [] : await ask((c, d) => d.wasForced(c, lost));
    return keyed.map((grant, index): Renewal => {
      if (renewed[index] === true) return { renewed: true, ttl: grant.ttl };
      return { renewed: false, reason: forced[lost.indexOf(grant)] === true ? 'forced' : 'superseded' };
    });
  }

  /** The place goes before the lock, or the next waiter sleeps beside a free one; the head is told after both. */
  async release(claim: Claim, options: { readonly keepFor: number; readonly late: boolean }): Promise<Freed> {
    const key = this.#key(claim.name);
    const { owner } = claim;
    const ask = this.#asker();
    const placed = this.#places.has(owner);
    if (options.late) await ask((c, d) => d.bury(c, key, owner));
    const { keepFor, late } = options;
    const { freed, mark } =
      keepFor > 0 || placed || late
        ? await ask((c, d) => d.free(c, key, owner, { keepFor, placed }))
        : await this.#endings.add({ key, owner });
    this.#places.delete(owner);
    if (options.late) this.#freeAgain(key, owner);
    const next = placed || options.late || mark > 0 ? await this.#wake(key, mark) : undefined;
    return { freed, ...(next === undefined ? {} : { next }) };
  }

  letLapse({ owner }: Claim): void {
    this.#places.delete(owner);
  }

  async forceRelease(name: string, expected: bigint | undefined): Promise<Freed> {
    const key = this.#key(name);
    const { freed, mark } = await this.#ask((c, d) => d.force(c, key, expected));
    const next = mark > 0 ? await this.#wake(key, mark) : undefined;
    return { freed, ...(next === undefined ? {} : { next }) };
  }

  async wasForced(name: string, fencingToken: bigint): Promise<boolean> {
    const grant = { key: this.#key(name), owner: '', fencingToken, ttl: 0 };
    const [forced] = await this.#ask((c, d) => d.wasForced(c, [grant]));
    return forced === true;
  }

  adopt(grant: Grant, newOwner: string): Promise<boolean> {
    return this.#ask((c, d) => d.adopt(c, this.#keyed(grant), newOwner));
  }

  inspect(name: string): Promise<LockState> {
    return this.#ask((c, d) => d.inspect(c, this.#key(name)));
  }

  async *list(start: string): AsyncIterable<LockState> {
    let after: Buffer | undefined = Buffer.alloc(0);
    while (after !== undefined) {
      const from: Buffer = after;
      const page: Page = await this.#ask((c, d) => d.list(c, this.#options.prefix, start, from));
      yield* page.states;
      after = page.after;
    }
  }

  refresh(claims: readonly Claim[]): Promise<ReadonlySet<string>> {
    const places = claims.map(({ name, owner }) => ({ key: this.#key(name), owner }));
    return this.#ask((c, d) => d.refresh(c, places));
  }

  peek(places: readonly Place[]): Promise<readonly Outlook[]> {
    const keyed = places.map(({ name, ticket }) => ({ key: this.#key(name), ticket }));
    return this.#ask((c, d) => d.peek(c, keyed));
  }

  sweep(retention: number, limit: number): Promise<number> {
    return this.#ask((c, d) => d.sweep(c, this.#options.prefix, retention, limit));
  }

  diagnose(): Promise<readonly Diagnosis[]> {
    const { clock } = this.#opened();
    return this.#ask((c, d) => d.diagnose(c, { clock, pushes: this.pushes }));
  }

  /** The lock is free already: that the head could not be told costs time, never the outcome. */
  async #wake(key: Key, mark: number): Promise<string | undefined> {
    const { connections, dialect } = this.#opened();
    // It ends what a release began.
    const call = { ...connections.begin(), begun: true };
    try {
      return await connections.use((connection) => dialect.wake(connection, key, mark), call);
    } catch {
      return undefined;
    }
  }

  /**
   * An attempt that had begun before the owner was buried did not see that. Once it must have ended, its grant, if
   * there is one, is freed.
   */
  #freeAgain(key: Key, owner: string): void {
    const { clock, late } = this.#opened();
    const cancel = (): void => {
      timer.cancel();
      this.#buried.delete(cancel);
    };
    const timer = clock.setTimer(2 * late, () => {
      cancel();
      this.#ask((c, d) => d.free(c, key, owner, { keepFor: 0, placed: false }))
        .then(({ freed, mark }) => (freed ? this.#wake(key, mark) : undefined))
        .catch(() => {});
    });
    this.#buried.add(cancel);
  }

  /** Asks one thing of the server. */
  #ask<T>(work: Question<C, T>): Promise<T> {
    return this.#asker()(work);
  }

  /** Asks one thing after another, all within one deadline. */
  #asker(interest?: Interest): <T>(work: Question<C, T>) => Promise<T> {
    const { connections, dialect } = this.#opened();
    const call = connections.begin(interest);
    return (work) => connections.use((connection) => work(connection, dialect), call);
  }

  #key(name: string): Key {
    return { id: this.#keys.of(name), prefix: this.#options.prefix, name };
  }

  #keyed({ claim, fencingToken, ttl }: Grant): KeyedGrant {
    return { key: this.#key(claim.name), owner: claim.owner, fencingToken, ttl };
  }

  #opened(): ServerParts<C> & { readonly clock: Clock; readonly late: number } {
    if (this.#open === undefined) throw new Error('this backend has not been opened');
    return this.#open;
  }
}
