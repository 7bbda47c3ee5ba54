import { randomUUID } from 'node:crypto';
import { failureOf } from './errors.js';
import type { Lease } from './leases.js';
import type { Session } from './session.js';
import type { StoredClaim } from './stored.js';
import * as transactions from './transactions.js';

/** One grant to be broken, by a transaction that may have been sent already. */
interface Blow {
  readonly holder: StoredClaim;
  /** Left by the transaction that breaks the grant: who finds it there, broke it. */
  readonly mark: transactions.Mark;
  readonly lease: Lease;
}

/** How long the mark of a blow whose answer was lost can be found, ms: past the last time that a caller asks again. */
const MARKED = 60_000;

/**
 * Frees names whoever holds them.
 *
 * That a grant has gone does not say who took it away. So the transaction that breaks it leaves a mark, and asking again
 * after a lost answer looks for that.
 */
export class Forcing {
  readonly #session: Session;
  /** Without answer yet, by name and expected token: the next to ask for the same goes on with it. */
  readonly #unanswered = new Map<string, Blow>();

  constructor(session: Session) {
    this.#session = session;
  }

  /** True if this removed the grant, in this call or in one before it that had no answer. */
  async forceRelease(name: string, expected?: bigint): Promise<boolean> {
    this.#forgetOld();
    const wish = `${expected ?? ''} ${name}`;
    for (;;) {
      const blow = this.#unanswered.get(wish) ?? (await this.#aim(name, expected));
      if (blow === undefined) return false;
      this.#unanswered.set(wish, blow);
      const broken = await this.#strike(wish, blow);
      this.#forget(wish, blow);
      if (!broken) continue;
      if (blow.holder.ownLease === true) this.#session.leases.revokeById(blow.holder.lease);
      return true;
    }
  }

  async #aim(name: string, expected: bigint | undefined): Promise<Blow | undefined> {
    const { keys, leases } = this.#session;
    const [holder] = await this.#session.queue(name);
    if (holder === undefined || holder.state === 'waiting') return undefined;
    if (expected !== undefined && holder.token !== expected) return undefined;
    const mark = keys.forced(name, randomUUID());
    const lease = await leases.own(MARKED, mark);
    return { holder, mark: { key: mark, lease: lease.id }, lease };
  }

  async #strike(wish: string, blow: Blow): Promise<boolean> {
    try {
      const breaking = transactions.breakGrant(blow.holder, blow.mark);
      return transactions.broken((await this.#session.transact('force a lock', breaking)).value);
    } catch (error) {
      // Without the lease there is no mark: the next to ask begins anew.
      if (failureOf(error) === 'lease-gone') this.#forget(wish, blow);
      throw error;
    }
  }

  #forget(wish: string, { lease, mark }: Blow): void {
    this.#unanswered.delete(wish);
    this.#session.leases.drop(lease, mark.key);
  }

  /** Nobody asked again. */
  #forgetOld(): void {
    const now = this.#session.clock.now();
    for (const [wish, blow] of this.#unanswered) if (blow.lease.validUntil < now) this.#forget(wish, blow);
  }
}
