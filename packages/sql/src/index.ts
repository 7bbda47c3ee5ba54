export { createBackend, driverParameters, sql } from './module.js';
export { options, type SqlOptions, schemes } from './options.js';
export { SWEPT_CHANNEL } from './sweeper.js';
