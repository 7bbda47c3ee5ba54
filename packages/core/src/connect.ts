import type { HoldfastConfig } from './config/config.js';
import type { ConnectOptions } from './config/resolve.js';
import { createLocks, type Locks } from './locks.js';

/**
 * Opens the locks of a backend.
 *
 * ```ts
 * const locks = await connect('redis://127.0.0.1:6379?prefix=shop');
 * ```
 *
 * Without a configuration it reads `HOLDFAST_URL`, then `HOLDFAST_CONFIG` or the nearest `holdfast.config.*`; with none
 * of these it uses a SQLite file that serves this user's processes on this machine, except in production.
 *
 * @param config a URL, or an object as in a config file
 * @param options `backends`: modules that the application imported, for bundlers; `configFile`: a file to read
 * @throws ConfigError naming the file or variable, the path inside it and what is allowed
 * @throws MissingPackageError with the command that installs the backend's package
 * @throws BackendError when the backend cannot be reached or refuses
 */
export async function connect(
  config?: string | URL | HoldfastConfig,
  options: ConnectOptions = {},
): Promise<Locks> {
  // Checks and loaders come only with the first connect(): importing core stays light, and works in browsers.
  const { resolveConnection } = await import('./config/resolve.js');
  const connection = await resolveConnection(config, options);
  return createLocks(connection.backend, connection.options);
}
