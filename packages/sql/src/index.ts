export type { KnexLike } from './knex.js';
export { createBackend, driverParameters, sql, sqlBackend } from './module.js';
export { options, type SqlOptions, schemes } from './options.js';
export { SWEPT_CHANNEL } from './sweeper.js';
