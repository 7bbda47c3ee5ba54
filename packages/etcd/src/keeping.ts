import type { Grant, Renewal } from '@holdfast/core';
import { Entry } from './entry.js';
import { toBackendError } from './errors.js';
import { type Lease, wholeSeconds } from './leases.js';
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
    const entries = grants.map((grant) => this.#entryOf(grant));
    const known = entries.filter((entry) => entry !== undefined);
    const [refreshed, found] = await Promise.all([this.#refresh(known), this.#find(known)]);
    return Promise.all(
      grants.map(async (grant, index): Promise<Renewal> => {
        const entry = entries[index];
        if (entry === undefined) return { renewed: false };
        return entry.inTurn(() => this.#renewal(entry, grant, refreshed, found));
      }),
    );
  }

  async extend(grant: Grant, ttl: number): Promise<Renewal> {
    const entry = this.#entryOf(grant);
    if (entry === undefined) return { renewed: false };
    return entry.inTurn(() => this.#extend(entry, grant, ttl));
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
   * The caller sees to it that the lease ends no sooner than core believes in the grant: whether or not the answer
   * arrives, the key then outlives that belief.
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
    const entries = [...this.#session.entries.values()].filter(
      (entry) => entry.lease === lease && entry.state.kind === 'held',
    );
    const found = await this.#find(entries);
    for (const entry of entries) {
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

  async #refresh(entries: readonly Entry[]): Promise<Answers<Lease, undefined>> {
    const leases = new Set(entries.flatMap(({ lease }) => lease ?? []));
    const answers = new Map<Lease, undefined | Error>();
    const refresh = async (lease: Lease): Promise<void> => {
      try {
        await this.#session.leases.refresh(lease);
        answers.set(lease, undefined);
      } catch (error) {
        answers.set(lease, toBackendError('keep a lease alive', error));
      }
    };
    await Promise.all([...leases].map(refresh));
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
    grant: Grant,
    refreshed: Answers<Lease, undefined>,
    found: Answers<Entry, StoredClaim | undefined>,
  ): Promise<Renewal> {
    const { lease } = entry;
    const stored = found.get(entry);
    if (stored instanceof Error) return { renewed: 'unknown', error: stored };
    if (lease === undefined || !entry.isHeldAs(stored)) return this.#lost(entry);
    try {
      if (await this.#isWellPlaced(entry, lease, stored, grant)) {
        const failure = refreshed.get(lease);
        if (failure !== undefined) return { renewed: 'unknown', error: failure };
        return renewed(lease, grant.ttl);
      }
      const target = await this.#newLeaseLasting(entry, grant.ttl, lease.from + grant.ttl);
      if (target === undefined) return renewed(lease, grant.ttl);
      return (await this.move(entry, target)) ? renewed(target, grant.ttl) : this.#lost(entry);
    } catch (error) {
      return { renewed: 'unknown', error: toBackendError('renew a lock', error) };
    }
  }

  /** On a lease that is here to stay, of the ttl that core wants. */
  async #isWellPlaced(entry: Entry, lease: Lease, stored: StoredClaim, { ttl }: Grant): Promise<boolean> {
    if (stored.mod > entry.mod) {
      // A write of ours was applied though its answer was lost.
      entry.mod = stored.mod;
      if (stored.lease !== lease.id) return false;
    }
    return !lease.retired && lease.ttl <= roundedUp(ttl);
  }

  async #extend(entry: Entry, grant: Grant, ttl: number): Promise<Renewal> {
    const { lease } = entry;
    if (lease === undefined) return { renewed: false };
    const believed = lease.from + grant.ttl;
    if (lease.ttl < roundedUp(ttl)) {
      const target = await this.#newLeaseLasting(entry, ttl, believed);
      if (target !== undefined)
        return (await this.move(entry, target)) ? renewed(target, ttl) : this.#lost(entry);
    }
    // Not less at the server, until core is known to count on less: the next renewal says so.
    const [refreshed, found] = await Promise.all([this.#refresh([entry]), this.#find([entry])]);
    return this.#renewal(entry, { ...grant, ttl: Math.max(ttl, grant.ttl) }, refreshed, found).then(
      (renewal) =>
        renewal.renewed === true
          ? { ...renewal, ttl: roundedUp(ttl), validFor: Math.min(roundedUp(ttl), renewal.ttl) }
          : renewal,
    );
  }

  /** A lease for this ttl that ends no sooner than `until`; undefined where that cannot be. */
  async #newLeaseLasting(entry: Entry, ttl: number, until: number): Promise<Lease | undefined> {
    const lease = await this.newLease(entry, ttl);
    if (lease === entry.lease) return undefined;
    await this.#session.leases.refresh(lease);
    if (!lease.retired && lease.validUntil >= until) return lease;
    this.#session.drop(entry, lease);
    return undefined;
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

function renewed(lease: Lease, ttl: number): Renewal {
  const effective = Math.min(roundedUp(ttl), lease.ttl);
  return { renewed: true, ttl: effective, validFor: effective, from: lease.from };
}

function roundedUp(ttl: number): number {
  return wholeSeconds(ttl) * 1000;
}
