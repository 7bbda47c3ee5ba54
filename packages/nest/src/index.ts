export { HoldfastModule, type HoldfastModuleAsyncOptions, InjectLocks, LOCKS } from './module.js';
export { WithLock } from './with-lock.js';
