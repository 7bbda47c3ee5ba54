import type { Row } from './guard.js';
import { type Family, familyOf, type KnexLike } from './knex.js';

/** A knex that opens transactions, typed by what we call. */
export interface KnexTransactions<Trx> extends KnexLike {
  transaction<T>(work: (trx: Trx) => Promise<T>): Promise<T>;
}

/** A query that locks, typed by what we call. */
interface LockingQuery extends PromiseLike<unknown[]> {
  where(condition: object): this;
  select(): this;
  limit(rows: number): this;
  forUpdate(): this;
  noWait(): this;
  skipLocked(): this;
}

/** Which row {@link withRowLock} locks, and how. */
export interface RowLock {
  readonly table: string;
  /** The row, or the rows of which the first is locked. */
  readonly where: Row;
  /**
   * What to do about a row that somebody else has locked: `wait` for it (default), come back at once (`nowait`), or
   * take another one that matches (`skipLocked`, for queues of jobs; MySQL 8, MariaDB 10.6).
   */
  readonly mode?: 'wait' | 'nowait' | 'skipLocked';
}

/** The outcome of {@link withRowLock}. */
export type RowLocked<T> = { readonly locked: true; readonly value: T } | { readonly locked: false };

/**
 * Pessimistic locking: runs the work in a transaction that has locked a row (`SELECT … FOR UPDATE`). The better answer
 * than a lock where all that must be protected is in this database and the work is short: the lock ends with the
 * transaction, and nothing can outlive it. It occupies a connection meanwhile, so keep the work short; for work
 * outside the database, or longer than a moment, take a lock.
 *
 * SQLite has one lock for all rows: the transaction takes it, and `skipLocked` is as `nowait`.
 *
 * @returns `locked: false` when there is no such row, or with `nowait` and `skipLocked` none that is free
 *
 * @example
 * const done = await withRowLock(knex, { table: 'jobs', where: { state: 'new' }, mode: 'skipLocked' },
 *   async (job, trx) => {
 *     await trx('jobs').where({ id: job.id }).update({ state: 'done' });
 *   });
 */
export async function withRowLock<Trx, T>(
  knex: KnexTransactions<Trx>,
  { table, where, mode = 'wait' }: RowLock,
  work: (row: Record<string, unknown>, trx: Trx) => Promise<T>,
): Promise<RowLocked<T>> {
  const family = familyOf(knex);
  let working = false;
  try {
    return await knex.transaction(async (trx) => {
      const row = await lockRow(trx as (table: string) => LockingQuery, family, table, where, mode);
      if (row === undefined) return { locked: false };
      working = true;
      return { locked: true, value: await work(row, trx) };
    });
  } catch (error) {
    if (!working && mode !== 'wait' && isLocked(error)) return { locked: false };
    throw error;
  }
}

async function lockRow(
  trx: (table: string) => LockingQuery,
  family: Family,
  table: string,
  where: Row,
  mode: RowLock['mode'],
): Promise<Record<string, unknown> | undefined> {
  const query = trx(table).where(where).select().limit(1);
  if (family === 'sqlite') {
    // The first statement must be one that writes: a transaction that has read cannot always write later.
    await (trx as unknown as { raw(sql: string, bindings: string[]): PromiseLike<unknown> }).raw(
      'DELETE FROM ?? WHERE 0',
      [table],
    );
  } else {
    query.forUpdate();
    if (mode === 'nowait') query.noWait();
    if (mode === 'skipLocked') query.skipLocked();
  }
  const [row] = await query;
  return row as Record<string, unknown> | undefined;
}

/** PostgreSQL's lock_not_available, MySQL's ER_LOCK_NOWAIT, MariaDB's lock wait timeout, SQLite's busy. */
function isLocked(error: unknown): boolean {
  const { code, errno } = error as { code?: unknown; errno?: unknown };
  return code === '55P03' || errno === 3572 || errno === 1205 || String(code).startsWith('SQLITE_BUSY');
}
