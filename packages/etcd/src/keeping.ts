import type { Grant, Renewal } from '@holdfast/core';
import { Entry } from './entry.js';
import { toBackendError } from './errors.js';
import type { Lease } from './leases.js';
import type { Session } from './session.js';
import type { StoredClaim } from './stored.js';
import * as transactions from './transactions.js';

/** Answers by the thing asked about: a value, or why there is none. */
type Answers<K, V> = ReadonlyMap<K, V | Error>;

/** What happens to a grant until it is given back: renewal, another ttl, another owner, a life without this process. */
export class Keeping {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  /** A lease for a grant: shared with all of the same ttl, unless the claim is not to be renewed. */
  async newLease(entry: Entry, ttl: number): Promise<Lease> {
    const { leases } = this.#session;
    const lease = entry.claim.renew ? await leases.shared(ttl, entry) : await leases.own(ttl, entry);
    entry.leases.add(lease);
    return lease;
  }

  grantOf(entry: Entry): Grant {
    const { claim, state, lease } = entry;
    if (state.kind !== 'held' || lease === undefined)
      throw new Error(`${claim.owner} does not hold its lock`);
    return { claim, fencingToken: state.token, ttl: lease.ttl, from: lease.from, validFor: lease.ttl };
  }

  /** One keep-alive for each lease, and one read for a hundred keys: a live lease does not prove that the key is there. */
  async renew(grants: readonly Grant[]): Promise<readonly Renewal[]> {
    const sent = this.#session.clock.now();
    const entries = grants.map((grant) => this.#entryOf(grant));
    const leases = grants.flatMap((grant, index) => {
      const lease = entries[index]?.lease;
      return lease !== undefined && this.#suits(lease, grant.ttl) ? lease : [];
    });
    const [refreshed, found] = await Promise.all([
      this.#refresh(leases),
      this.#find(entries.filter((entry) => entry !== undefined)),
    ]);
    return Promise.all(
      grants.map(async (grant, index): Promise<Renewal> => {
        const entry = entries[index];
        if (entry === undefined) return { renewed: false };
        return entry.inTurn(async () =>
          this.#session.knows(entry)
            ? this.#renewal(entry, grant.ttl, sent, refreshed, found)
            : { renewed: false },
        );
      }),
    );
  }

  async extend(grant: Grant, ttl: number): Promise<Renewal> {
    const [renewal] = await this.renew([{ ...grant, ttl }]);
    return renewal ?? { renewed: false };
  }

  async verify(grant: Grant): Promise<boolean> {
    const entry = this.#entryOf(grant);
    if (entry === undefined) return false;
    const { value } = await this.#session.transact('verify a lock', transactions.read([entry.key]));
    if (entry.isHeldAs(transactions.claimsIn(value)[0]?.[0])) return true;
    this.#session.forget(entry);
    return false;
  }

  /** Onto a lease of its own, which nobody here knows any more. */
  async detach(grant: Grant): Promise<void> {
    const { leases } = this.#session;
    const entry = this.#entryOf(grant);
    await entry?.inTurn(async () => {
      if (this.#entryOf(grant) !== entry) return;
      entry.detaching = true;
      const lease = await leases.own(grant.ttl, entry);
      entry.leases.add(lease);
      if (await this.move(entry, lease)) leases.forget(lease);
      this.#session.forget(entry);
    });
  }

  async adopt(grant: Grant, newOwner: string): Promise<Grant | undefined> {
    const { keys, entries } = this.#session;
    const claim = { ...grant.claim, owner: newOwner };
    for (;;) {
      const stored = await this.#findToken(grant);
      const ours = stored?.owner === newOwner || stored?.owner === grant.claim.owner;
      if (stored?.state !== 'held' || !ours) {
        const entry = entries.get(newOwner);
        if (entry !== undefined) this.#session.forget(entry);
        return undefined;
      }
      const entry = entries.get(newOwner) ?? new Entry(claim, stored.key, keys.claims(claim.name));
      entries.set(newOwner, entry);
      if (await entry.inTurn(() => this.#takeOver(entry, stored, grant.ttl))) return this.grantOf(entry);
    }
  }

  /**
   * Puts the key on another lease, if it still is this grant.
   *
   * The caller sees to it that the lease ends no sooner than the present one: core's belief in the grant comes from the
   * present one, and stays true whether or not the answer to this arrives.
   */
  async move(entry: Entry, lease: Lease): Promise<boolean> {
    for (;;) {
      const put = { key: entry.key, value: entry.value('held', lease), lease: lease.id };
      const { value } = await this.#session.transact('renew a lock', transactions.replace(entry, put));
      const { done, own, revision } = transactions.outcome(value);
      if (!done && !entry.isHeldAs(own)) return false;
      entry.mod = done ? revision : (own?.mod ?? entry.mod);
      if (done || own?.lease === lease.id) {
        this.#session.bind(entry, lease);
        return true;
      }
    }
  }

  /** The server does not know the lease: its grants are lost, unless their keys have moved on. */
  async leaseGone(lease: Lease): Promise<void> {
    const entries = this.#session.entries.values().filter((entry) => entry.leases.has(lease));
    for (const entry of entries) if (entry.abandoned) this.#session.forget(entry);
    const held = entries.filter(
      (entry) => entry.state.kind === 'held' && entry.lease === lease && !entry.abandoned,
    );
    const found = await this.#find(held);
    for (const entry of held) {
      const stored = found.get(entry);
      if (stored instanceof Error || entry.isHeldAs(stored) || entry.lease !== lease) continue;
      this.#session.forget(entry);
      this.#session.host.lost(entry.claim.owner, 'superseded');
    }
  }

  #entryOf(grant: Grant): Entry | undefined {
    const entry = this.#session.entries.get(grant.claim.owner);
    return entry?.state.kind === 'held' && entry.state.token === grant.fencingToken ? entry : undefined;
  }

  async #refresh(leases: readonly Lease[]): Promise<Answers<Lease, undefined>> {
    const answers = new Map<Lease, undefined | Error>();
    const refresh = async (lease: Lease): Promise<void> => {
      try {
        await this.#session.leases.refresh(lease);
        answers.set(lease, undefined);
      } catch (error) {
        answers.set(lease, toBackendError('keep a lease alive', error));
      }
    };
    await Promise.all([...new Set(leases)].map(refresh));
    return answers;
  }

  async #find(entries: readonly Entry[]): Promise<Answers<Entry, StoredClaim | undefined>> {
    const answers = new Map<Entry, StoredClaim | undefined | Error>();
    const find = async (batch: readonly Entry[]): Promise<void> => {
      try {
        const reading = transactions.read(batch.map(({ key }) => key));
        const { value } = await this.#session.transact('renew a lock', reading);
        const claims = transactions.claimsIn(value);
        for (const [index, entry] of batch.entries()) answers.set(entry, claims[index]?.[0]);
      } catch (error) {
        for (const entry of batch) answers.set(entry, toBackendError('renew a lock', error));
      }
    };
    const batches: Promise<void>[] = [];
    for (let start = 0; start < entries.length; start += transactions.READ_LIMIT) {
      batches.push(find(entries.slice(start, start + transactions.READ_LIMIT)));
    }
    await Promise.all(batches);
    return answers;
  }

  async #renewal(
    entry: Entry,
    ttl: number,
    sent: number,
    refreshed: Answers<Lease, undefined>,
    found: Answers<Entry, StoredClaim | undefined>,
  ): Promise<Renewal> {
    const stored = found.get(entry);
    if (stored instanceof Error) return { renewed: 'unknown', error: stored };
    if (!entry.isHeldAs(stored)) return this.#lost(entry);
    try {
      const lease = this.#leaseOf(entry, stored);
      const failure = lease && refreshed.get(lease);
      if (failure !== undefined) return { renewed: 'unknown', error: failure };
      if (lease !== undefined && this.#suits(lease, ttl)) return this.#renewed(lease, ttl, sent);
      const next = await this.#nextLease(entry, lease, ttl);
      if (next === lease) return this.#renewed(next, ttl, sent);
      return (await this.move(entry, next)) ? this.#renewed(next, ttl, sent) : this.#lost(entry);
    } catch (error) {
      return { renewed: 'unknown', error: toBackendError('renew a lock', error) };
    }
  }

  /** The lease that the key is on; another than we thought where a write was applied and its answer lost. */
  #leaseOf(entry: Entry, stored: StoredClaim): Lease | undefined {
    // What was read before our last write says nothing.
    if (stored.mod <= entry.mod) return entry.lease;
    entry.mod = stored.mod;
    const lease = [...entry.leases].find(({ id }) => id === stored.lease);
    if (lease !== undefined) this.#session.bind(entry, lease);
    return lease;
  }

  #suits(lease: Lease, ttl: number): boolean {
    return !lease.retired && lease.ttl === this.#session.leases.effective(ttl);
  }

  /**
   * The lease to go on with: of the wanted ttl, unless that would end sooner than the present one. Then the present one
   * it is, as an own lease which nobody keeps alive, until the wanted ttl reaches as far.
   */
  async #nextLease(entry: Entry, present: Lease | undefined, ttl: number): Promise<Lease> {
    const { leases, clock } = this.#session;
    const end = present?.validUntil ?? Number.NEGATIVE_INFINITY;
    if (present === undefined || clock.now() + leases.effective(ttl) >= end) {
      const lease = await this.newLease(entry, ttl);
      await leases.atMost(lease, 0);
      if (lease.validUntil >= end) return lease;
      this.#session.drop(entry, lease);
    }
    if (present !== undefined && !present.shared) return present;
    const rest = await leases.own(end - clock.now(), entry);
    entry.leases.add(rest);
    return rest;
  }

  #renewed(lease: Lease, ttl: number, sent: number): Renewal {
    const effective = this.#session.leases.effective(ttl);
    // A lease that is longer than wanted is good for the wanted time from now on, which it outlasts.
    const from = lease.ttl > effective ? Math.min(sent, lease.validUntil - effective) : lease.from;
    return { renewed: true, ttl: effective, validFor: Math.min(effective, lease.ttl), from };
  }

  async #takeOver(entry: Entry, stored: StoredClaim, ttl: number): Promise<boolean> {
    const { leases } = this.#session;
    const lease = await this.newLease(entry, ttl);
    await leases.refresh(lease);
    entry.since = stored.since;
    const put = { key: entry.key, value: entry.value('held', lease), lease: lease.id };
    const { value } = await this.#session.transact('adopt a lock', transactions.replace(stored, put));
    const { done, revision } = transactions.outcome(value);
    if (!done) return false;
    entry.state = { kind: 'held', token: stored.token };
    entry.mod = revision;
    this.#session.bind(entry, lease);
    if (stored.ownLease === true && stored.lease !== lease.id) leases.revokeById(stored.lease);
    return true;
  }

  async #findToken({ claim, fencingToken }: Grant): Promise<StoredClaim | undefined> {
    const range = this.#session.keys.claims(claim.name);
    const { value } = await this.#session.transact(
      'adopt a lock',
      transactions.findToken(range, fencingToken),
    );
    return transactions.claimsIn(value)[0]?.[0];
  }

  #lost(entry: Entry): Renewal {
    this.#session.forget(entry);
    return { renewed: false };
  }
}
