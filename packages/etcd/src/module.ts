import type { BackendModule, BackendOptions, LockBackend } from '@holdfast/core';
import { EtcdBackend } from './backend.js';
import { handedIn, ownEndpoints } from './endpoint.js';
import { checkPrefix, type EtcdBackendOptions, targetOf } from './options.js';

/** URL schemes. */
export const schemes = ['etcd', 'etcds'] as const;

/** Options that a URL or a config may have besides `prefix`. */
export const options = {
  username: 'string',
  password: 'string',
  ca: 'string',
  cert: 'string',
  key: 'string',
  serverName: 'string',
} as const;

/** etcd3 documents no URL parameters. */
export const driverParameters: readonly string[] = [];

/** Makes a backend from a checked configuration, for `connect()`. */
export function createBackend(configured: BackendOptions): LockBackend {
  return etcdBackend(configured as EtcdBackendOptions);
}

/** This package as `connect()` sees it: `connect(config, { backends: [etcd] })`. */
export const etcd: BackendModule = { schemes, options, driverParameters, createBackend };

/**
 * Locks on etcd 3.4 or later, for `createLocks`.
 *
 * ```ts
 * const locks = await createLocks(etcdBackend({ hosts: ['h1:2379', 'h2:2379', 'h3:2379'] }));
 * ```
 *
 * @throws InvalidArgumentError, or ConfigError for a URL that cannot be used
 */
export function etcdBackend(given: EtcdBackendOptions): EtcdBackend {
  const { client, prefix = 'holdfast' } = given;
  checkPrefix(prefix);
  if (client !== undefined) {
    const endpoints = handedIn(client);
    return new EtcdBackend(prefix, () => endpoints);
  }
  const target = targetOf(given);
  return new EtcdBackend(prefix, () => ownEndpoints(target));
}
