import type { Claim, Diagnosis, Grant, LockState, Renewal } from '@holdfast/core';
import type { Interest } from '../interest.js';
import { Keys } from '../key.js';
import type { Migrations, Tables } from '../schema.js';
import {
  FAR,
  type Freed,
  LIVENESS,
  type LockStore,
  type Outlook,
  type Place,
  type Refusal,
  type StoreFacts,
  type StoreSession,
} from '../store.js';
import { MachineClock, type MachineTime, TICK } from './machine-clock.js';
import { Sql, type SqliteDatabase, type SqliteSource, SqliteTransactions } from './sqlite-connection.js';
import { diagnoseSqlite } from './sqlite-diagnosis.js';
import { sqliteError } from './sqlite-errors.js';

/** How a store reaches its database. */
export interface SqliteOptions {
  readonly prefix: string;
  readonly tables: Tables;
  readonly migrate: boolean;
  /** For messages: the file, or whose knex it is. */
  readonly label: string;
  readonly connect: (prepare: (database: SqliteDatabase) => void) => SqliteSource;
}

/** How many times the command timeout opening may take. */
const OPENING = 5;

/**
 * Locks in a SQLite file. Every method is one transaction under the file's write lock, so that the rules of the
 * store read as plain code: look at the row and the queue, decide, write.
 */
export class SqliteStore implements LockStore {
  readonly pushes = false;
  readonly #options: SqliteOptions;
  readonly #keys: Keys;
  readonly #sql: SqliteStatements;
  #session: { readonly transactions: SqliteTransactions; readonly clock: MachineClock } | undefined;
  #source: SqliteSource | undefined;

  constructor(options: SqliteOptions) {
    this.#options = options;
    this.#keys = new Keys(options.prefix);
    this.#sql = statements(options.tables);
  }

  async open({ clock, commandTimeout }: StoreSession): Promise<StoreFacts> {
    const source = this.#options.connect((database) => {
      if (this.#options.migrate) migrateSqlite(database, this.#options.tables);
    });
    this.#source = source;
    const within = (timeout: number) => ({
      transactions: new SqliteTransactions(source, clock, timeout),
      clock: new MachineClock(clock),
    });
    // Where many processes start at once, each waits for the others to make the schema and switch the journal.
    this.#session = within(commandTimeout * OPENING);
    await this.peek([{ name: '', ticket: 0 }]);
    this.#session = within(commandTimeout);
    return { product: 'sqlite', crossProcess: true };
  }

  async close(): Promise<void> {
    await this.#source?.close();
  }

  attempt(claim: Claim, interest: Interest): Promise<Grant | Refusal> {
    return this.#write((sql, time) => {
      const id = this.#id(claim.name);
      const lock = this.#lock(sql, time, id);
      if (lock?.owner === claim.owner) {
        sql.run(this.#sql.prolong, { ...time, id, ttl: claim.ttl * 1000 });
        sql.run(this.#sql.leave, { id, owner: claim.owner });
        return { claim, fencingToken: BigInt(lock.fence), ttl: claim.ttl };
      }
      const ticket = sql.row<{ ticket: number }>(this.#sql.ticket, {
        ...time,
        id,
        owner: claim.owner,
      })?.ticket;
      const ahead = this.#ahead(sql, time, id, ticket);
      if (!lock?.live && ahead === 0) {
        const fence = nextToken(lock, time);
        sql.run(this.#sql.take, {
          ...time,
          id,
          prefix: this.#options.prefix,
          name: claim.name,
          owner: claim.owner,
          metadata: claim.metadata ?? null,
          fence,
          ttl: claim.ttl * 1000,
        });
        if (ticket !== undefined) sql.run(this.#sql.leave, { id, owner: claim.owner });
        return { claim, fencingToken: fence, ttl: claim.ttl };
      }
      const refusal = refusalOf(lock, time);
      if (!claim.queue) return refusal;
      return { ...refusal, ...position(ahead), ticket: ticket ?? this.#join(sql, time, id, claim.owner) };
    }, interest);
  }

  renew(grants: readonly Grant[]): Promise<readonly Renewal[]> {
    return this.#write((sql, time) =>
      grants.map((grant): Renewal => {
        const key = { id: this.#id(grant.claim.name), owner: grant.claim.owner, fence: grant.fencingToken };
        const renewed = sql.run(this.#sql.renew, { ...time, ...key, ttl: grant.ttl * 1000 });
        if (renewed > 0) return { renewed: true, ttl: grant.ttl };
        const forced = sql.row(this.#sql.wasForced, { id: key.id, fence: key.fence }) !== undefined;
        return { renewed: false, reason: forced ? 'forced' : 'superseded' };
      }),
    );
  }

  release(claim: Claim, { keepFor }: { readonly keepFor: number }): Promise<Freed> {
    return this.#write((sql, time) => {
      const id = this.#id(claim.name);
      sql.run(this.#sql.leave, { id, owner: claim.owner });
      const freed =
        sql.run(this.#sql.free, { ...time, id, owner: claim.owner, keepFor: Math.ceil(keepFor * 1000) }) > 0;
      return { freed, ...this.#next(sql, time, id) };
    });
  }

  /** The file has all that there is. */
  letLapse(): void {}

  adopt(grant: Grant, newOwner: string): Promise<boolean> {
    return this.#write((sql, time) => {
      const key = { id: this.#id(grant.claim.name), owner: grant.claim.owner, fence: grant.fencingToken };
      return sql.run(this.#sql.adopt, { ...time, ...key, newOwner, ttl: grant.ttl * 1000 }) > 0;
    });
  }

  inspect(name: string): Promise<LockState> {
    return this.#read((sql, time) => this.#state(sql, time, name, this.#lock(sql, time, this.#id(name))));
  }

  async *list(prefix: string): AsyncIterable<LockState> {
    const page = 200;
    let after: Uint8Array = Buffer.alloc(0);
    for (;;) {
      const states = await this.#read((sql, time) => {
        const parameters = { ...time, after, page, prefix: this.#options.prefix, start: prefix };
        const rows = sql.rows<LockRow & { id: ArrayBuffer | Uint8Array; name: string }>(
          this.#sql.list,
          parameters,
        );
        const last = rows.at(-1);
        // libsql 0.5 gives a blob as an ArrayBuffer when it reads many rows.
        if (last !== undefined) after = Buffer.from(last.id as Uint8Array);
        return rows.map((row) => this.#state(sql, time, row.name, row));
      });
      yield* states;
      if (states.length < page) return;
    }
  }

  wasForced(name: string, token: bigint): Promise<boolean> {
    const row = { id: this.#id(name), fence: token };
    return this.#read((sql) => sql.row(this.#sql.wasForced, row) !== undefined);
  }

  forceRelease(name: string, expected: bigint | undefined): Promise<Freed> {
    return this.#write((sql, time) => {
      const id = this.#id(name);
      const freed = sql.run(this.#sql.force, { ...time, id, expected: expected ?? null }) > 0;
      return { freed, ...this.#next(sql, time, id) };
    });
  }

  refresh(claims: readonly Claim[]): Promise<ReadonlySet<string>> {
    return this.#write((sql, time) => {
      const alive = claims.filter(({ name, owner }) => {
        const id = this.#id(name);
        return sql.run(this.#sql.refresh, { ...time, id, owner, liveness: LIVENESS * 1000 }) > 0;
      });
      return new Set(alive.map(({ owner }) => owner));
    });
  }

  peek(places: readonly Place[]): Promise<readonly Outlook[]> {
    return this.#read((sql, time) =>
      places.map(({ name, ticket }): Outlook => {
        const id = this.#id(name);
        const lock = this.#lock(sql, time, id);
        const ahead = this.#ahead(sql, time, id, ticket);
        return { turn: !lock?.live && ahead === 0, ahead, expiresIn: expiresIn(lock, time) };
      }),
    );
  }

  sweep(retention: number, limit: number): Promise<number> {
    return this.#write((sql, time) => {
      const parameters = {
        ...time,
        prefix: this.#options.prefix,
        before: time.wall - retention * 1000,
        limit,
      };
      return sql.run(this.#sql.sweepWaiters, parameters) + sql.run(this.#sql.sweepLocks, parameters);
    });
  }

  diagnose(): Promise<readonly Diagnosis[]> {
    return this.#read((sql, time) => diagnoseSqlite(sql, time));
  }

  #id(name: string): Buffer {
    return this.#keys.of(name);
  }

  #lock(sql: Sql, time: MachineTime, id: Buffer): LockRow | undefined {
    return sql.row<LockRow>(this.#sql.lock, { ...time, id });
  }

  /** Live waiters before this ticket; all of them for a claim that has none. */
  #ahead(sql: Sql, time: MachineTime, id: Buffer, ticket: number | undefined): number {
    const before = ticket ?? Number.MAX_SAFE_INTEGER;
    return sql.row<{ n: number }>(this.#sql.ahead, { ...time, id, before, far: FAR })?.n ?? 0;
  }

  #join(sql: Sql, time: MachineTime, id: Buffer, owner: string): number {
    // A dead place of this owner is not revived: others may have been served past it.
    sql.run(this.#sql.leave, { id, owner });
    const joined = sql.row<{ ticket: number }>(this.#sql.join, {
      ...time,
      id,
      owner,
      liveness: LIVENESS * 1000,
    });
    return joined?.ticket ?? 0;
  }

  #next(sql: Sql, time: MachineTime, id: Buffer): { next?: string } {
    if (this.#lock(sql, time, id)?.live) return {};
    const head = sql.row<{ owner: string }>(this.#sql.head, { ...time, id });
    return head === undefined ? {} : { next: head.owner };
  }

  #state(sql: Sql, time: MachineTime, name: string, lock: LockRow | undefined): LockState {
    const waiters = sql
      .rows<{ owner: string }>(this.#sql.waiters, { ...time, id: this.#id(name) })
      .map(({ owner }, index) => ({ owner, position: index + 1 }));
    if (!lock?.live) return { name, held: false, waiters };
    const grant = { fencingToken: BigInt(lock.fence), expiresIn: expiresIn(lock, time) };
    if (lock.owner === null) return { name, held: true, ...grant, waiters };
    return {
      name,
      held: true,
      owner: lock.owner,
      ...grant,
      acquiredAt: new Date(lock.acquired / 1000),
      ...(lock.metadata === null ? {} : { metadata: lock.metadata }),
      waiters,
    };
  }

  async #write<T>(work: (sql: Sql, time: MachineTime) => T, interest?: Interest): Promise<T> {
    const { transactions, clock } = this.#opened();
    try {
      return await transactions.write((sql) => work(sql, clock.read()), interest);
    } catch (error) {
      throw sqliteError(error, this.#options.label);
    }
  }

  async #read<T>(work: (sql: Sql, time: MachineTime) => T): Promise<T> {
    const { transactions, clock } = this.#opened();
    try {
      return await transactions.read((sql) => work(sql, clock.read()));
    } catch (error) {
      throw sqliteError(error, this.#options.label);
    }
  }

  #opened(): { readonly transactions: SqliteTransactions; readonly clock: MachineClock } {
    if (this.#session === undefined) throw new Error('this backend has not been opened');
    return this.#session;
  }
}

interface LockRow {
  readonly owner: string | null;
  readonly fence: string;
  readonly acquired: number;
  readonly metadata: string | null;
  readonly expires: number;
  readonly live: number;
}

function nextToken(lock: LockRow | undefined, time: MachineTime): bigint {
  const now = BigInt(time.wall);
  if (lock === undefined) return now;
  const after = BigInt(lock.fence) + 1n;
  return after > now ? after : now;
}

function expiresIn(lock: LockRow | undefined, time: MachineTime): number {
  return lock?.live ? Math.max(0, (lock.expires - time.now) / 1000) : 0;
}

function refusalOf(lock: LockRow | undefined, time: MachineTime): Refusal {
  if (!lock?.live) return {};
  const retryAfter = expiresIn(lock, time);
  if (lock.owner === null) return { retryAfter };
  return { holder: { owner: lock.owner, since: new Date(lock.acquired / 1000) }, retryAfter };
}

function position(ahead: number): { position?: number } {
  return ahead < FAR ? { position: ahead + 1 } : {};
}

/**
 * The rows carry their end on two clocks. Written and read on one clock (the same boot), that one decides. After a
 * restart the wall clock does, and a wall clock that is behind the row's own writing proves nothing: the holder
 * ended with the machine. The clock ticks in hundredths of a second, so that a row lives one tick longer.
 */
const LIVE = `CASE WHEN clock = @clockId THEN expires + ${TICK} > @now
  ELSE expires_wall > @wall AND written <= @wall END`;

/** The moment `@ttl` from now, on both clocks, never earlier than it was. */
const PROLONG = (ttl: string): string => `
  expires = CASE WHEN clock = @clockId THEN max(expires, @now + ${ttl}) ELSE @now + ${ttl} END,
  expires_wall = CASE WHEN clock = @clockId THEN max(expires_wall, @wall + ${ttl}) ELSE @wall + ${ttl} END,
  clock = @clockId, written = @wall`;

type SqliteStatements = ReturnType<typeof statements>;

function statements({ locks, waiters }: Tables) {
  const row = `owner, CAST(fence AS TEXT) AS fence, acquired, metadata, expires, ${LIVE} AS live`;
  return {
    lock: `SELECT ${row} FROM ${locks} WHERE id = @id`,
    take: `INSERT INTO ${locks}
        (id, prefix, name, owner, fence, acquired, metadata, clock, expires, expires_wall, written, forced)
      VALUES (@id, @prefix, @name, @owner, @fence, @wall, @metadata, @clockId, @now + @ttl, @wall + @ttl, @wall, 0)
      ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, fence = excluded.fence, acquired = excluded.acquired,
        metadata = excluded.metadata, clock = excluded.clock, expires = excluded.expires,
        expires_wall = excluded.expires_wall, written = excluded.written`,
    prolong: `UPDATE ${locks} SET ${PROLONG('@ttl')} WHERE id = @id`,
    renew: `UPDATE ${locks} SET ${PROLONG('@ttl')} WHERE id = @id AND owner = @owner AND fence = @fence`,
    wasForced: `SELECT 1 FROM ${locks} WHERE id = @id AND forced = @fence AND forced <> 0`,
    adopt: `UPDATE ${locks} SET owner = @newOwner, ${PROLONG('@ttl')}
      WHERE id = @id AND owner IN (@owner, @newOwner) AND fence = @fence AND ${LIVE}`,
    free: `UPDATE ${locks} SET owner = NULL, metadata = NULL, clock = @clockId,
        expires = CASE WHEN @keepFor > 0 THEN @now + @keepFor ELSE 0 END, expires_wall = @wall + @keepFor,
        written = @wall
      WHERE id = @id AND owner = @owner`,
    force: `UPDATE ${locks} SET owner = NULL, metadata = NULL, forced = fence, clock = @clockId,
        expires = 0, expires_wall = @wall, written = @wall
      WHERE id = @id AND ${LIVE} AND (@expected IS NULL OR fence = @expected)`,
    list: `SELECT l.id AS id, name, ${row} FROM ${locks} AS l
      WHERE l.id > @after AND prefix = @prefix AND substr(name, 1, length(@start)) = @start
        AND (${LIVE} OR EXISTS (SELECT 1 FROM ${waiters} WHERE id = l.id AND ${LIVE}))
      ORDER BY l.id LIMIT @page`,

    ticket: `SELECT ticket FROM ${waiters} WHERE id = @id AND owner = @owner AND ${LIVE}`,
    ahead: `SELECT count(*) AS n FROM
      (SELECT 1 FROM ${waiters} WHERE id = @id AND ticket < @before AND ${LIVE} LIMIT @far)`,
    head: `SELECT owner FROM ${waiters} WHERE id = @id AND ${LIVE} ORDER BY ticket LIMIT 1`,
    waiters: `SELECT owner FROM ${waiters} WHERE id = @id AND ${LIVE} ORDER BY ticket`,
    leave: `DELETE FROM ${waiters} WHERE id = @id AND owner = @owner`,
    join: `INSERT INTO ${waiters} (id, owner, clock, expires, expires_wall, written)
      VALUES (@id, @owner, @clockId, @now + @liveness, @wall + @liveness, @wall) RETURNING ticket`,
    refresh: `UPDATE ${waiters} SET ${PROLONG('@liveness')}
      WHERE id = @id AND owner = @owner AND ${LIVE}`,

    sweepWaiters: `DELETE FROM ${waiters} WHERE ticket IN
      (SELECT ticket FROM ${waiters} WHERE NOT (${LIVE}) LIMIT @limit)`,
    sweepLocks: `DELETE FROM ${locks} WHERE id IN
      (SELECT l.id FROM ${locks} AS l WHERE prefix = @prefix AND NOT (${LIVE})
        AND expires_wall < @before AND fence < @before
        AND NOT EXISTS (SELECT 1 FROM ${waiters} AS w WHERE w.id = l.id) LIMIT @limit)`,
  };
}

/** The schema of SQLite, version by version. */
export const SQLITE_MIGRATIONS: Migrations = [
  ({ locks, waiters, schema }) => [
    `CREATE TABLE IF NOT EXISTS ${locks} (
      id BLOB NOT NULL PRIMARY KEY, prefix TEXT NOT NULL, name TEXT NOT NULL, owner TEXT, fence INTEGER NOT NULL,
      acquired INTEGER NOT NULL, metadata TEXT, clock TEXT NOT NULL, expires INTEGER NOT NULL,
      expires_wall INTEGER NOT NULL, written INTEGER NOT NULL, forced INTEGER NOT NULL
    ) WITHOUT ROWID`,
    // AUTOINCREMENT: a ticket is never given twice, even when the newest waiter has gone.
    `CREATE TABLE IF NOT EXISTS ${waiters} (
      ticket INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL, owner TEXT NOT NULL, clock TEXT NOT NULL,
      expires INTEGER NOT NULL, expires_wall INTEGER NOT NULL, written INTEGER NOT NULL, UNIQUE (id, owner)
    )`,
    `CREATE INDEX IF NOT EXISTS ${waiters}_queue ON ${waiters} (id, ticket)`,
    `CREATE TABLE IF NOT EXISTS ${schema} (version INTEGER PRIMARY KEY)`,
    `INSERT OR IGNORE INTO ${schema} (version) VALUES (1)`,
  ],
];

/** Brings the schema up to date, in one transaction, so that any number may start at once. */
export function migrateSqlite(database: SqliteDatabase, tables: Tables): void {
  const sql = new Sql(database);
  if (versionOf(sql, tables) >= SQLITE_MIGRATIONS.length) return;
  database.exec('BEGIN IMMEDIATE');
  try {
    for (const migration of SQLITE_MIGRATIONS.slice(versionOf(sql, tables))) {
      for (const statement of migration(tables)) database.exec(statement);
    }
    database.exec('COMMIT');
  } catch (error) {
    if (database.inTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

function versionOf(sql: Sql, { schema }: Tables): number {
  const exists = sql.row("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = @schema", { schema });
  if (exists === undefined) return 0;
  return sql.row<{ version: number | null }>(`SELECT max(version) AS version FROM ${schema}`)?.version ?? 0;
}
