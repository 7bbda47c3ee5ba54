import { StaleTokenError } from '@holdfast/core';
import { asText, type GuardQuery, integer, type KnexQueries, type Row } from './guard.js';

/** What {@link fencedUpdate} writes, and where. */
export interface FencedUpdate {
  readonly table: string;
  /** The row: its key. */
  readonly where: Row;
  /** A 64-bit integer column that keeps the newest token. Null counts as older than any. Default `fence`. */
  readonly fenceColumn?: string;
  /** The holder's `fencingToken`. */
  readonly token: bigint;
  readonly set: Row;
}

/**
 * Writes a row only where no later holder has written it, in one statement. So a holder that was paused past its ttl
 * cannot undo what its successor did, whatever it believes of its lock.
 *
 * @param knex a knex, or a transaction
 * @returns how many rows it wrote: 0 when there is no such row
 * @throws StaleTokenError when the row has a newer token
 *
 * @example
 * await lock.run(async (hold) => {
 *   await fencedUpdate(knex, {
 *     table: 'orders', where: { id: 42 }, token: hold.fencingToken, set: { state: 'charged' },
 *   });
 * });
 */
export async function fencedUpdate(knex: KnexQueries, update: FencedUpdate): Promise<number> {
  const { table, where, fenceColumn = 'fence', token, set } = update;
  const value = integer(knex, token);
  const written = await notNewer(knex(table).where(where), fenceColumn, value).update({
    ...set,
    [fenceColumn]: value,
  });
  if (written > 0) return written;
  const rows = (await knex(table)
    .where(where)
    .select(asText(knex, fenceColumn, 'seen'))) as { seen: unknown }[];
  const seen = rows.filter((row) => row.seen !== null).map((row) => BigInt(String(row.seen)));
  const newest = seen.reduce<bigint | undefined>((a, b) => (a === undefined || b > a ? b : a), undefined);
  if (newest !== undefined && newest > token) throw new StaleTokenError(table, token, newest);
  // A session that counts changed rows answers 0 for a row that was as it should be already.
  return seen.filter((fence) => fence === token).length;
}

function notNewer(query: GuardQuery, column: string, token: unknown): GuardQuery {
  return query.where(
    (either: { whereNull(c: string): { orWhere(c: string, o: string, v: unknown): unknown } }) => {
      either.whereNull(column).orWhere(column, '<=', token);
    },
  );
}
