import type { AcquireOptions, Locks } from '@holdfast/core';
import { InjectLocks } from './module.js';

const LOCKS_OF = Symbol('holdfast.locks');

interface Host {
  readonly [LOCKS_OF]: Locks;
}

/**
 * Runs a provider's or controller's method under a lock, whichever instance of the application it is called on.
 *
 * ```ts
 * @WithLock((order: string) => `order:${order}`, { wait: '5s' })
 * async pay(order: string) { … }
 * ```
 *
 * Other decorators of the method may stand above or below. The call rejects as `lock.run()` does: `LockTimeoutError`,
 * `LockLostError`, `BackendError`, or the method's own error.
 *
 * @param name the lock's name, or how the method's arguments make it
 */
export function WithLock<A extends unknown[] = never[]>(
  name: string | ((...args: A) => string),
  options?: AcquireOptions,
) {
  return <M extends (...args: A) => Promise<unknown>>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<M>,
  ): void => {
    const method = descriptor.value;
    if (method === undefined) throw new TypeError(`@WithLock() is for methods, and ${String(key)} is none`);
    // So that the class need not ask for the locks itself.
    InjectLocks()(target, LOCKS_OF);
    const locked = async function (this: Host, ...args: A): Promise<unknown> {
      const lock = this[LOCKS_OF].lock(typeof name === 'string' ? name : name(...args));
      return lock.run(() => method.apply(this, args), options);
    };
    copyMetadata(method, locked);
    descriptor.value = locked as M;
  };
}

/** Routes, schedules and the like are kept on the function itself. */
function copyMetadata(from: object, to: object): void {
  for (const key of Reflect.getOwnMetadataKeys(from)) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, from), to);
  }
}
