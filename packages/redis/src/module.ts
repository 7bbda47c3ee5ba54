import type { BackendModule, BackendOptions, LockBackend } from '@holdfast/core';
import { RedisBackend } from './backend.js';
import { driverParameters, options, parseUrl, type RedisBackendOptions, schemes } from './options.js';
import { RedisQuorumBackend } from './quorum/backend.js';
import type { RedisQuorumOptions } from './quorum/options.js';

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

/**
 * A backend on three or more Redis servers that know nothing of each other, a majority of which must agree.
 *
 * ```ts
 * const locks = await createLocks(redisQuorumBackend({ clients: [new Redis(7001), new Redis(7002), new Redis(7003)] }));
 * ```
 *
 * @throws ConfigError, InvalidArgumentError
 */
export function redisQuorumBackend(given: RedisQuorumOptions): LockBackend {
  return new RedisQuorumBackend(given);
}

/** From a config or a URL: core has checked the options by name and type. */
export function createBackend(given: BackendOptions): LockBackend {
  const isQuorum =
    given.url === undefined ? given.clients !== undefined : parseUrl(given.url).flavour === 'quorum';
  return isQuorum ? new RedisQuorumBackend(given) : new RedisBackend(given);
}

/** For `connect(config, { backends: [redis] })`, where packages cannot be resolved at run time. */
export const redis: BackendModule = { schemes, options, driverParameters, createBackend };
