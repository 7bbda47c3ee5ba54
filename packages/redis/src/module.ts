import type { BackendModule, BackendOptions, LockBackend } from '@holdfast/core';
import { RedisBackend } from './backend.js';
import { driverParameters, options, type RedisBackendOptions, schemes } from './options.js';

/**
 * A backend on one Redis server, on the master that Sentinel names, or on a cluster.
 *
 * ```ts
 * const locks = await createLocks(redisBackend({ client: new Redis() }));
 * ```
 *
 * @throws ConfigError, InvalidArgumentError
 */
export function redisBackend(given: RedisBackendOptions): LockBackend {
  return new RedisBackend(given);
}

/** From a config or a URL: core has checked the options by name and type. */
export function createBackend(given: BackendOptions): LockBackend {
  return new RedisBackend(given);
}

/** For `connect(config, { backends: [redis] })`, where packages cannot be resolved at run time. */
export const redis: BackendModule = { schemes, options, driverParameters, createBackend };
