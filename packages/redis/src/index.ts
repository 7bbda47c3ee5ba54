export type { AnyClient } from './client.js';
export { fencedSet, fenceKeyOf, type ScriptClient } from './fenced-set.js';
export { createBackend, redis, redisBackend, redisQuorumBackend } from './module.js';
export {
  driverParameters,
  type NatMap,
  type NodeAddress,
  options,
  type RedisBackendOptions,
  schemes,
} from './options.js';
export type { RedisQuorumOptions } from './quorum/options.js';
