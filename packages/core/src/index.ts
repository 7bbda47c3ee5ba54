export type {
  BackendHost,
  BackendModule,
  BackendOptions,
  Claim,
  Contended,
  Diagnosis,
  Grant,
  LockBackend,
  OptionType,
  Renewal,
} from './backend.js';
export { type Clock, sleep, systemClock, type Timer } from './clock.js';
export type { BackendSection, HoldfastConfig, KnownBackend } from './config/config.js';
export type { ConnectOptions } from './config/resolve.js';
export { connect } from './connect.js';
export { type Deadline, Deadlines } from './deadlines.js';
export { type Duration, type DurationLimits, MAX_DURATION, parseDuration } from './duration.js';
export {
  BackendError,
  ConfigError,
  type HolderInfo,
  HoldfastError,
  type HoldfastErrorCode,
  type HoldfastErrorOptions,
  InvalidArgumentError,
  isHoldfastError,
  LockLostError,
  LocksClosedError,
  LockTimeoutError,
  type LostReason,
  MissingPackageError,
  StaleTokenError,
  UnsupportedError,
} from './errors.js';
export { createFenceGuard, type FenceGuard, type FenceStore } from './fence.js';
export type { LockHandle } from './handle.js';
export type { AcquireOptions, DistributedLock, LockOptions } from './lock.js';
export {
  type Capabilities,
  createLocks,
  type EventContext,
  type LockEvents,
  type LockState,
  type Locks,
  type LocksOptions,
} from './locks.js';
export { type MemoryBackendOptions, memoryBackend } from './memory/backend.js';
export { MemoryStore } from './memory/store.js';
export { OwnerMap } from './owner-map.js';
