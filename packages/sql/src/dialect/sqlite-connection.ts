import { mkdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { type Clock, Deadlines, MissingPackageError, sleep } from '@holdfast/core';
import { Abandoned } from '../connections.js';
import type { Interest } from '../interest.js';
import type { KnexLike } from '../knex.js';
import { within } from '../within.js';
import { isBusy } from './sqlite-errors.js';

/** The few calls that libsql and better-sqlite3 share. Parameters are named and always given as one object. */
export interface SqliteDatabase {
  prepare(sql: string): SqliteStatement;
  exec(sql: string): unknown;
  close(): unknown;
  readonly inTransaction: boolean;
}

export interface SqliteStatement {
  get(parameters: object): unknown;
  all(parameters: object): unknown[];
  run(parameters: object): { readonly changes: number | bigint };
}

type SqliteConstructor = new (path: string, options: { timeout: number }) => SqliteDatabase;

/**
 * ms that a statement may block the event loop for others. Without a write-ahead log a commit must wait until readers
 * have left; one that gave up at once would never come through while many look in. With the log there is no such wait.
 */
const PATIENCE = 10;

/** How long a source may look for a connection. */
export interface Patience {
  readonly clock: Clock;
  /** On the clock's `now`. */
  readonly deadline: number;
}

/** Lends a database for one synchronous piece of work. Throws busy errors at once: nothing may block the event loop. */
export interface SqliteSource {
  use<T>(work: (database: SqliteDatabase) => T, patience: Patience): Promise<T>;
  close(): Promise<void>;
}

/**
 * A file of our own. It opens when first used, and again when somebody has replaced the file: a connection to a
 * deleted file would go on granting locks that nobody else sees.
 */
export class SqliteFile implements SqliteSource {
  readonly #path: string;
  readonly #journal: 'wal' | 'delete';
  readonly #prepare: (database: SqliteDatabase) => void;
  #opened: { readonly database: SqliteDatabase; readonly identity: string } | undefined;
  #closed = false;

  /** @param prepare brings a database that was just opened into shape; may throw busy, then opening starts anew */
  constructor(path: string, journal: 'wal' | 'delete', prepare: (database: SqliteDatabase) => void) {
    this.#path = path;
    this.#journal = journal;
    this.#prepare = prepare;
  }

  async use<T>(work: (database: SqliteDatabase) => T): Promise<T> {
    return work(this.#database());
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#drop();
  }

  #database(): SqliteDatabase {
    if (this.#closed) throw new Error(`the file ${this.#path} is closed`);
    if (this.#opened !== undefined && this.#opened.identity === identify(this.#path)) {
      return this.#opened.database;
    }
    this.#drop();
    const Driver = loadDriver();
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
    const database = new Driver(this.#path, { timeout: this.#journal === 'wal' ? 0 : PATIENCE });
    try {
      database.prepare(`PRAGMA journal_mode = ${this.#journal}`).all({});
      // With a write-ahead log a power cut may undo the last grants, whose holders it ends as well.
      database.exec(`PRAGMA synchronous = ${this.#journal === 'wal' ? 'NORMAL' : 'FULL'}`);
      this.#prepare(database);
      this.#opened = { database, identity: identify(this.#path) };
      return database;
    } catch (error) {
      database.close();
      throw error;
    }
  }

  #drop(): void {
    this.#opened?.database.close();
    this.#opened = undefined;
  }
}

/** A connection from a knex that was handed in, whose client is better-sqlite3. */
export class SqliteKnex implements SqliteSource {
  readonly #knex: KnexLike;
  readonly #prepared = new WeakSet<SqliteDatabase>();
  readonly #prepare: (database: SqliteDatabase) => void;

  constructor(knex: KnexLike, prepare: (database: SqliteDatabase) => void) {
    this.#knex = knex;
    this.#prepare = prepare;
  }

  async use<T>(work: (database: SqliteDatabase) => T, patience: Patience): Promise<T> {
    const database = await this.#acquire(patience);
    try {
      return hurried(database, () => {
        if (!this.#prepared.has(database)) {
          this.#prepare(database);
          this.#prepared.add(database);
        }
        return work(database);
      });
    } finally {
      await this.#knex.client.releaseConnection(database);
    }
  }

  async close(): Promise<void> {}

  /** A transaction of the application's may keep the only connection that there is. */
  async #acquire({ clock, deadline }: Patience): Promise<SqliteDatabase> {
    const { client } = this.#knex;
    const arriving = client.acquireConnection();
    const deadlines = new Deadlines(clock, { keepAlive: false });
    try {
      const left = deadline - clock.now();
      return (await within(deadlines, left, arriving, () => new NoConnection())) as SqliteDatabase;
    } catch (error) {
      // It may still arrive, when nobody waits for it any more.
      arriving.then((connection) => client.releaseConnection(connection)).catch(() => {});
      throw error;
    } finally {
      deadlines.stop();
    }
  }
}

/** The pool lent nothing in time. */
class NoConnection extends Error {
  constructor() {
    super('its pool gave no connection in time: does a transaction keep it, which waits for the lock?');
  }
}

/** The owner's busy timeout would block the event loop for seconds, so ours counts while we work. */
function hurried<T>(database: SqliteDatabase, work: () => T): T {
  const { timeout } = database.prepare('PRAGMA busy_timeout').get({}) as { timeout: number };
  database.exec(`PRAGMA busy_timeout = ${PATIENCE}`);
  try {
    return work();
  } finally {
    database.exec(`PRAGMA busy_timeout = ${timeout}`);
  }
}

/** Runs transactions on a source and asks again, later, while the file is busy. */
export class SqliteTransactions {
  readonly #source: SqliteSource;
  readonly #clock: Clock;
  readonly #timeout: number;
  readonly #statements = new WeakMap<SqliteDatabase, Map<string, SqliteStatement>>();

  constructor(source: SqliteSource, clock: Clock, timeout: number) {
    this.#source = source;
    this.#clock = clock;
    this.#timeout = timeout;
  }

  /**
   * One transaction that writes. It takes the write lock at its start: a transaction that reads first and then
   * writes fails at once, whatever the busy timeout, when another has written in between.
   */
  write<T>(work: (sql: Sql) => T, interest?: Interest): Promise<T> {
    return this.#run('BEGIN IMMEDIATE', work, interest);
  }

  /** One transaction that only reads. */
  read<T>(work: (sql: Sql) => T): Promise<T> {
    return this.#run('BEGIN', work);
  }

  async #run<T>(begin: string, work: (sql: Sql) => T, interest?: Interest): Promise<T> {
    const deadline = this.#clock.now() + this.#timeout;
    const patience = { clock: this.#clock, deadline };
    for (let tries = 0; ; tries++) {
      try {
        return await this.#source.use((database) => {
          // The connection may have come late.
          if (interest?.lost) throw new Abandoned();
          const sql = this.#sql(database);
          sql.run(begin);
          try {
            const result = work(sql);
            sql.run('COMMIT');
            return result;
          } catch (error) {
            if (database.inTransaction) sql.run('ROLLBACK');
            throw error;
          }
        }, patience);
      } catch (error) {
        if (!isBusy(error) || interest?.lost || this.#clock.now() >= deadline) throw error;
      }
      // The others' transactions take well below a millisecond: come back soon, ever later, never in step.
      await sleep(this.#clock, 1 + Math.random() * Math.min(2 ** tries, 20), interest?.signal);
    }
  }

  #sql(database: SqliteDatabase): Sql {
    let statements = this.#statements.get(database);
    if (statements === undefined) {
      statements = new Map();
      this.#statements.set(database, statements);
    }
    return new Sql(database, statements);
  }
}

/** Prepared statements by their text. */
export class Sql {
  readonly #database: SqliteDatabase;
  readonly #statements: Map<string, SqliteStatement>;

  constructor(database: SqliteDatabase, statements: Map<string, SqliteStatement> = new Map()) {
    this.#database = database;
    this.#statements = statements;
  }

  row<R>(text: string, parameters: object = {}): R | undefined {
    return this.#statement(text).get(parameters) as R | undefined;
  }

  rows<R>(text: string, parameters: object = {}): R[] {
    return this.#statement(text).all(parameters) as R[];
  }

  /** Answers how many rows it changed. */
  run(text: string, parameters: object = {}): number {
    return Number(this.#statement(text).run(parameters).changes);
  }

  #statement(text: string): SqliteStatement {
    let statement = this.#statements.get(text);
    if (statement === undefined) {
      statement = this.#database.prepare(text);
      this.#statements.set(text, statement);
    }
    return statement;
  }
}

function identify(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? 'gone' : `${stat.dev}:${stat.ino}`;
}

/** libsql installs without a compiler; better-sqlite3 has the same calls and serves where libsql has no binary. */
function loadDriver(): SqliteConstructor {
  const require = createRequire(import.meta.url);
  try {
    return require('libsql') as SqliteConstructor;
  } catch (cause) {
    try {
      return require('better-sqlite3') as SqliteConstructor;
    } catch {
      throw new MissingPackageError('better-sqlite3', 'SQLite on this platform', { cause });
    }
  }
}
