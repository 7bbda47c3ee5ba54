import { type Family, familyOf, type KnexLike } from './knex.js';

/**
 * A knex, or a transaction of one, as the guards use it. Typed by the few calls that we make, so that any copy and
 * version of knex is accepted.
 */
export interface KnexQueries extends KnexLike {
  (table: string): GuardQuery;
  // biome-ignore lint/suspicious/noExplicitAny: knex's own bindings type, which is wider than any that we could name
  raw(sql: string, bindings: any): unknown;
}

/** The few calls of a knex query that the guards make. */
export interface GuardQuery {
  where(condition: object): GuardQuery;
  update(values: object): PromiseLike<number>;
  select(...columns: unknown[]): PromiseLike<unknown[]>;
}

/** Which rows: columns and their values, as knex's `where` takes them. */
export type Row = Readonly<Record<string, unknown>>;

const INTEGERS: Readonly<Record<Family, string>> = { sqlite: 'INTEGER', postgres: 'BIGINT', mysql: 'SIGNED' };
const TEXTS: Readonly<Record<Family, string>> = { sqlite: 'TEXT', postgres: 'TEXT', mysql: 'CHAR' };

/** A 64-bit number as the database takes it, whatever the driver does with a bigint. */
export function integer(knex: KnexQueries, value: bigint): unknown {
  return knex.raw(`CAST(? AS ${INTEGERS[familyOf(knex)]})`, [value.toString()]);
}

/** A 64-bit column as text: drivers round it otherwise. */
export function asText(knex: KnexQueries, column: string, alias: string): unknown {
  return knex.raw(`CAST(?? AS ${TEXTS[familyOf(knex)]}) AS ??`, [column, alias]);
}
