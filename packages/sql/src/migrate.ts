import { MYSQL_MIGRATIONS } from './dialect/mysql.js';
import { POSTGRES_MIGRATIONS } from './dialect/postgres.js';
import { SQLITE_MIGRATIONS } from './dialect/sqlite.js';
import { type Family, familyOf, type KnexLike } from './knex.js';
import { createBackend, sqlBackend } from './module.js';
import type { SqlOptions } from './options.js';
import { type Migrations, tablesOf } from './schema.js';

/**
 * Makes or updates the tables, for those who run their application with `migrate: false`. Any number may do so at once.
 *
 * @throws BackendError when the database cannot be reached or this user may not change the schema
 */
export async function migrate(
  target: Pick<SqlOptions, 'table'> & ({ readonly url: string } | { readonly knex: KnexLike }),
): Promise<void> {
  const options = { ...target, migrate: true, sweepEvery: 0 };
  const backend = 'knex' in options ? sqlBackend(options) : createBackend(options);
  try {
    await backend.open();
  } finally {
    await backend.close();
  }
}

/** A migration source as knex takes it. */
export interface KnexMigrationSource {
  getMigrations(): Promise<string[]>;
  getMigrationName(migration: string): string;
  getMigration(migration: string): Promise<{
    up(knex: KnexRaw): Promise<void>;
    down(knex: KnexRaw): Promise<void>;
  }>;
}

/** The one call of a knex that a migration makes. */
export interface KnexRaw extends KnexLike {
  raw(sql: string): PromiseLike<unknown>;
}

const MIGRATIONS: Readonly<Record<Family, Migrations>> = {
  sqlite: SQLITE_MIGRATIONS,
  postgres: POSTGRES_MIGRATIONS,
  mysql: MYSQL_MIGRATIONS,
};

/** The number of versions is the same on every database. */
const NAMES = POSTGRES_MIGRATIONS.map((_, index) => `holdfast_${String(index + 1).padStart(3, '0')}`);

/**
 * The schema as migrations of knex, for applications that keep theirs so:
 * `await knex.migrate.latest({ migrationSource: knexMigrations(), tableName: 'holdfast_knex_migrations' })`,
 * or hand what `getMigration` gives to a source of your own. Works with and without the tables being there already.
 *
 * @param options `table` as for the backend
 */
export function knexMigrations(options: Pick<SqlOptions, 'table'> = {}): KnexMigrationSource {
  const tables = tablesOf(options.table ?? 'holdfast');
  return {
    getMigrations: async () => [...NAMES],
    getMigrationName: (migration) => migration,
    getMigration: async (migration) => ({
      async up(knex) {
        const version = NAMES.indexOf(migration);
        for (const sql of MIGRATIONS[familyOf(knex)][version]?.(tables) ?? []) await knex.raw(sql);
      },
      async down(knex) {
        if (NAMES.indexOf(migration) > 0) return;
        for (const table of Object.values(tables)) await knex.raw(`DROP TABLE IF EXISTS ${table}`);
      },
    }),
  };
}
