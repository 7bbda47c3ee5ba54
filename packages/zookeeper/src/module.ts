import type { BackendModule, BackendOptions, LockBackend } from '@holdfast/core';
import { zookeeperBackend } from './backend.js';
import { fromBackendOptions, options } from './options.js';

/** `zookeeper://h1:2181,h2:2181/chroot` */
export const schemes: readonly string[] = ['zookeeper'];

/** The URL takes nothing but our own options. */
export const driverParameters: readonly string[] = [];

/** What `connect()` calls. */
export function createBackend(given: BackendOptions): LockBackend {
  return zookeeperBackend(fromBackendOptions(given));
}

/** For `connect(config, { backends: [zookeeper] })`. */
export const zookeeper: BackendModule = { schemes, options, driverParameters, createBackend };
