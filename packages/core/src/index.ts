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
export type { LockHandle } from './handle.js';
export type { AcquireOptions, DistributedLock, LockOptions } from './lock.js';
export type { Capabilities, EventContext, LockEvents, LockState, Locks, LocksOptions } from './locks.js';
