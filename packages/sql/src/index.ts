export { type FencedUpdate, fencedUpdate } from './fenced-update.js';
export type { GuardQuery, KnexQueries, Row } from './guard.js';
export type { KnexClient, KnexLike } from './knex.js';
export {
  type KnexMigrationSource,
  type KnexRaw,
  knexMigrations,
  migrate,
} from './migrate.js';
export { createBackend, driverParameters, sql, sqlBackend } from './module.js';
export { options, type SqlOptions, schemes } from './options.js';
export { type KnexTransactions, type RowLock, type RowLocked, withRowLock } from './row-lock.js';
export { SWEPT_CHANNEL } from './sweeper.js';
export { updateVersioned, type VersionedUpdate } from './update-versioned.js';
