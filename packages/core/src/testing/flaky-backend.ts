import type { LockBackend } from '../backend.js';
import { BackendError } from '../errors.js';

type Method =
  | 'attempt'
  | 'renew'
  | 'extend'
  | 'release'
  | 'adopt'
  | 'inspect'
  | 'awaitTurn'
  | 'open'
  | 'forceRelease';

/**
 * - `lose-answer`: the request is carried out, the answer never comes as an answer: an error does.
 * - `refuse`: an error, and nothing was carried out.
 * - `deny`: a permanent refusal.
 * - `hang`: neither is carried out nor answered.
 * - `late`: carried out only when `letThrough` is called.
 */
export type Fault = 'lose-answer' | 'refuse' | 'deny' | 'hang' | 'late';

/** A backend with faults at the seam: the next calls of a method meet the faults that were lined up for it. */
export class FlakyBackend {
  readonly backend: LockBackend;
  /** What was called, in order, such as `attempt` or `release`. */
  readonly calls: string[] = [];
  readonly #faults = new Map<Method, Fault[]>();
  #late: (() => void)[] = [];

  constructor(inner: LockBackend) {
    this.backend = new Proxy(inner, {
      get: (target, property) => {
        const value: unknown = Reflect.get(target, property, target);
        if (property === 'twin') return undefined;
        if (typeof value !== 'function' || property === 'list') return value;
        const call = (...args: unknown[]): unknown => Reflect.apply(value, target, args);
        return (...args: unknown[]) => this.#intercept(String(property) as Method, () => call(...args));
      },
    });
  }

  /** Lines faults up for a method: each is met by one call. */
  next(method: Method, ...faults: Fault[]): void {
    this.#faults.set(method, [...(this.#faults.get(method) ?? []), ...faults]);
  }

  /** How often a method was called. */
  count(method: Method): number {
    return this.calls.filter((call) => call === method).length;
  }

  /** Carries out what was held up. */
  letThrough(): void {
    const late = this.#late;
    this.#late = [];
    for (const carryOut of late) carryOut();
  }

  async #intercept(method: Method, call: () => unknown): Promise<unknown> {
    this.calls.push(method);
    const fault = this.#faults.get(method)?.shift();
    switch (fault) {
      case undefined:
        return call();
      case 'lose-answer':
        await call();
        throw new BackendError('BACKEND_UNAVAILABLE', 'the answer was lost');
      case 'refuse':
        throw new BackendError('BACKEND_UNAVAILABLE', 'the connection was refused');
      case 'deny':
        throw new BackendError('BACKEND_REFUSED', 'wrong password');
      case 'hang':
        return new Promise(() => undefined);
      case 'late':
        return new Promise((resolve) => {
          this.#late.push(() => resolve(call()));
        });
    }
  }
}
