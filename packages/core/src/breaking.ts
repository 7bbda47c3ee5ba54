import type { LockBackend } from './backend.js';

/**
 * A release by force, from the first request to an answer. Who is to lose the lock is settled before anything is sent: a
 * request that is sent again after a lost answer must not break the next holder's grant as well.
 */
export class Breaking {
  readonly #backend: LockBackend;
  readonly #name: string;
  readonly #expected: bigint | undefined;
  /** What a request has been sent for: a grant, or a tail that shows no token and is nobody's. */
  #aim: bigint | 'tail' | undefined;
  #strikes = 0;

  constructor(backend: LockBackend, name: string, expected: bigint | undefined) {
    this.#backend = backend;
    this.#name = name;
    this.#expected = expected;
  }

  /** True if this freed the name, now or in an earlier call that had no answer. May be called again after a failure. */
  async strike(): Promise<boolean> {
    const strike = ++this.#strikes;
    if (this.#aim !== undefined) return this.#strikeAgain(this.#aim);
    for (;;) {
      const token = this.#expected ?? (await this.#present());
      // Free; or the caller has given this call up, and made another.
      if (token === undefined || strike !== this.#strikes) return false;
      this.#aim = token;
      const freed = await this.#backend.forceRelease(this.#name, token === 'tail' ? undefined : token);
      if (freed || this.#expected !== undefined || strike !== this.#strikes) return freed;
      // It has changed hands between the two requests.
      this.#aim = undefined;
    }
  }

  async #strikeAgain(token: bigint | 'tail'): Promise<boolean> {
    if (token === 'tail') {
      // Whoever holds it by now came after the tail: it has gone.
      return (await this.#present()) !== 'tail' || this.#backend.forceRelease(this.#name);
    }
    if (await this.#backend.forceRelease(this.#name, token)) return true;
    return (await this.#backend.wasForced?.(this.#name, token)) === true;
  }

  async #present(): Promise<bigint | 'tail' | undefined> {
    const { held, fencingToken } = await this.#backend.inspect(this.#name);
    return held ? (fencingToken ?? 'tail') : undefined;
  }
}
