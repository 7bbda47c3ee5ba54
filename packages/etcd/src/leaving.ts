import type { Claim, Timer } from '@holdfast/core';
import { Entry } from './entry.js';
import type { Lease } from './leases.js';
import type { Session } from './session.js';
import type { StoredClaim } from './stored.js';
import * as transactions from './transactions.js';

/** A `minHold` tail that this process ends in time, to the millisecond: the lease behind it counts in seconds. */
interface Tail {
  readonly lease: Lease;
  readonly timer: Timer;
}

/** The ways in which a claim is given back: at once, or with a tail. */
export class Leaving {
  readonly #session: Session;
  readonly #tails = new Set<Tail>();

  constructor(session: Session) {
    this.#session = session;
  }

  /** True if this removed a grant, or left a tail of one. */
  async release(claim: Claim, keepFor: number): Promise<boolean> {
    const entry = this.#session.entries.get(claim.owner) ?? (await this.#recover(claim));
    if (entry === undefined) return false;
    return entry.inTurn(async () => {
      entry.abandoned = true;
      try {
        const released = keepFor > 0 ? await this.#leaveTail(entry, keepFor) : await this.remove(entry);
        this.#session.forget(entry);
        return released;
      } catch (error) {
        // One lost answer is not worth disturbing all who share its leases. Who asks a third time finds it by its owner.
        if (keepFor === 0 && ++entry.unanswered > 1) this.#session.letLapse(entry);
        throw error;
      }
    });
  }

  /** Deletes the key, whichever write of ours was the last. True if it was a grant. */
  async remove(entry: Entry): Promise<boolean> {
    let held = entry.state.kind === 'held';
    let last: (Pick<StoredClaim, 'key' | 'mod'> & Partial<StoredClaim>) | undefined =
      entry.mod > 0n ? { key: entry.key, mod: entry.mod } : await this.#look(entry);
    while (last !== undefined) {
      const removing = transactions.remove(last);
      const scope = entry.claim.name;
      const { value, strays } = await this.#session.transact('release a lock', removing, { scope });
      if (value.succeeded) {
        entry.keyGone = true;
        return held;
      }
      last = await this.#look(entry);
      // An earlier try of this request may be the one that deleted it.
      if (entry.keyGone && strays) return held;
      held = last?.state === 'held';
    }
    return false;
  }

  /** Tails go on without this process, to the end of their leases. */
  close(): void {
    for (const { lease, timer } of this.#tails) {
      timer.cancel();
      this.#session.leases.forget(lease);
    }
    this.#tails.clear();
  }

  async #leaveTail(entry: Entry, keepFor: number): Promise<boolean> {
    const { leases, clock } = this.#session;
    const user = {};
    const lease = await leases.own(keepFor, user);
    try {
      if (!(await this.#becomeTail(entry, lease))) {
        leases.drop(lease, user);
        return false;
      }
    } catch (error) {
      // It may be the tail already: then it lasts until its lease ends.
      leases.forget(lease);
      throw error;
    }
    const timer = clock.setTimer(keepFor, () => {
      this.#tails.delete(tail);
      leases.drop(lease, user);
    });
    const tail: Tail = { lease, timer };
    this.#tails.add(tail);
    return true;
  }

  async #becomeTail(entry: Entry, lease: Lease): Promise<boolean> {
    let last = entry.state.kind === 'held' ? { key: entry.key, mod: entry.mod } : await this.#look(entry);
    while (last !== undefined) {
      const put = { key: entry.key, value: entry.value('tail', lease), lease: lease.id };
      const { value } = await this.#session.transact('release a lock', transactions.replace(last, put));
      const { done, own } = transactions.outcome(value);
      if (done || own?.lease === lease.id) return true;
      // A place in the queue has no tail.
      if (this.#isOurs(entry, own) && own.state === 'waiting') return this.remove(entry);
      last = this.#isOurs(entry, own) ? own : undefined;
    }
    return false;
  }

  async #look(entry: Entry): Promise<StoredClaim | undefined> {
    const { value } = await this.#session.transact('release a lock', transactions.read([entry.key]));
    const own = transactions.claimsIn(value)[0]?.[0];
    entry.keyGone = own === undefined;
    return this.#isOurs(entry, own) ? own : undefined;
  }

  /** An adopted hold keeps its key, but not its owner. A tail has been given back already. */
  #isOurs(entry: Entry, own: StoredClaim | undefined): own is StoredClaim {
    return own !== undefined && own.owner === entry.claim.owner && own.state !== 'tail';
  }

  /** A claim that this process does not know, or has lost from sight: it may have left something all the same. */
  async #recover(claim: Claim): Promise<Entry | undefined> {
    const claims = await this.#session.queue(claim.name);
    const stored = claims.find(({ owner, state }) => owner === claim.owner && state !== 'tail');
    if (stored === undefined) return undefined;
    const entry = new Entry(claim, stored.key, this.#session.keys.claims(claim.name));
    entry.since = stored.since;
    entry.mod = stored.mod;
    if (stored.state === 'held') entry.state = { kind: 'held', token: stored.token };
    return entry;
  }
}
