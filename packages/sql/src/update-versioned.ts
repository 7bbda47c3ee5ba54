import type { KnexQueries, Row } from './guard.js';

/** What {@link updateVersioned} writes, and where. */
export interface VersionedUpdate {
  readonly table: string;
  /** The row: its key. */
  readonly where: Row;
  /** An integer column that counts the writes. Default `version`. */
  readonly versionColumn?: string;
  /** The version that was read: the write counts only if the row still has it. */
  readonly version: number;
  readonly set: Row;
}

/**
 * Optimistic locking: writes a row only if nobody has written it since it was read, in one statement, and counts its
 * version up. The better answer than a lock where conflicts are rare and the work can be done again, and the only one
 * where a person edits for minutes.
 *
 * @param knex a knex, or a transaction
 * @returns whether it was written; if not, read the row again and decide anew
 *
 * @example
 * const row = await knex('articles').where({ id: 7 }).first();
 * const saved = await updateVersioned(knex, {
 *   table: 'articles', where: { id: 7 }, version: row.version, set: { title: 'New' },
 * });
 * if (!saved) throw new Error('somebody else has changed the article');
 */
export async function updateVersioned(knex: KnexQueries, update: VersionedUpdate): Promise<boolean> {
  const { table, where, versionColumn = 'version', version, set } = update;
  const written = await knex(table)
    .where(where)
    .where({ [versionColumn]: version })
    .update({ ...set, [versionColumn]: version + 1 });
  return written > 0;
}
