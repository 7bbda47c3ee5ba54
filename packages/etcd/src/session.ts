import { randomUUID } from 'node:crypto';
import { type BackendHost, type Claim, type Clock, OwnerMap } from '@holdfast/core';
import type { ITxnRequest, ITxnResponse } from 'etcd3';
import { Entry } from './entry.js';
import type { Keyspace } from './keys.js';
import { Labels } from './labels.js';
import { type Lease, Leases } from './leases.js';
import { Lookout } from './lookout.js';
import { Outbox } from './outbox.js';
import type { StoredClaim } from './stored.js';
import { claimsIn, queue } from './transactions.js';
import type { Answer, Transport } from './transport.js';
import { Watches } from './watches.js';

/** What the parts of an open backend share: the way to the server, and what this process has there. */
export class Session {
  readonly host: BackendHost;
  readonly clock: Clock;
  readonly transport: Transport;
  readonly keys: Keyspace;
  readonly leases: Leases;
  readonly watches: Watches;
  readonly lookout: Lookout;
  /** This process's claims by owner. */
  readonly entries = new OwnerMap<Entry>();
  /** By name, the last of this process to join the queue, for as long as it is known. */
  readonly lastQueued = new Map<string, Entry>();
  readonly #labels = new Labels(randomUUID());
  readonly #outbox: Outbox;

  constructor(host: BackendHost, transport: Transport, keys: Keyspace, leaseGone: (lease: Lease) => void) {
    this.host = host;
    this.clock = host.clock;
    this.transport = transport;
    this.keys = keys;
    this.leases = new Leases(transport, host.clock, {
      gone: leaseGone,
      report: (error) => host.report(error),
    });
    this.watches = new Watches(transport, host.clock);
    this.#outbox = new Outbox(
      (what, transaction, timeout) =>
        transport.call(what, (rpc, call) => rpc.txn(transaction, call), timeout),
      host.clock,
    );
    const read = async (reading: ITxnRequest): Promise<ITxnResponse> =>
      (await this.transact('look at the queue', reading)).value;
    this.lookout = new Lookout(read, host.clock);
  }

  /**
   * @param what completes "etcd could not …"
   * @param options.timeout ms. Default the command timeout.
   * @param options.scope as in `Outbox.send`
   */
  transact(
    what: string,
    transaction: ITxnRequest,
    { timeout = this.transport.timeout, scope }: { readonly timeout?: number; readonly scope?: string } = {},
  ): Promise<Answer<ITxnResponse>> {
    return this.#outbox.send(what, transaction, timeout, scope);
  }

  /** A new claim of this process, which has nothing at the server yet. */
  enrol(claim: Claim): Entry {
    const label = this.#labels.take(claim.name);
    const { keys } = this;
    const entry = new Entry(claim, keys.claim(claim.name, label.text), keys.claims(claim.name), label);
    this.entries.set(claim.owner, entry);
    return entry;
  }

  /** Every claim on the name, the oldest first. */
  async queue(name: string): Promise<readonly StoredClaim[]> {
    const { value } = await this.transact('read a lock', queue(this.keys.claims(name)));
    return claimsIn(value)[0] ?? [];
  }

  /** Its key is on this lease, and on no other. */
  bind(entry: Entry, lease: Lease): void {
    entry.lease = lease;
    entry.place = undefined;
    for (const other of entry.leases) if (other !== lease) this.drop(entry, other);
    entry.leases.add(lease);
  }

  drop(entry: Entry, lease: Lease): void {
    entry.leases.delete(lease);
    this.leases.drop(lease, entry);
  }

  /** It is this process's claim still: whoever waited for its turn with it must ask. */
  knows(entry: Entry): boolean {
    return this.entries.get(entry.claim.owner) === entry;
  }

  /**
   * Nobody knows what it has at the server, and nobody could take that back. It lapses with its leases, which others that
   * use them leave, and which are revoked then: a claim that is kept alive by others would stay for as long as they.
   */
  letLapse(entry: Entry): void {
    for (const lease of entry.leases) this.leases.retire(lease);
    this.forget(entry);
  }

  /** Nothing of it is at the server any more, and nothing that comes late may stay. */
  forget(entry: Entry): void {
    const { owner, name } = entry.claim;
    if (entry.label !== undefined)
      this.#labels.giveBack(entry.label, entry.keyGone && entry.strays.size === 0);
    entry.label = undefined;
    if (this.knows(entry)) this.entries.delete(owner);
    if (this.lastQueued.get(name) === entry) this.lastQueued.delete(name);
    for (const lease of entry.leases) this.drop(entry, lease);
    // A request that was sent and never answered would make the key again. Once its lease is gone it cannot.
    for (const lease of entry.strays) this.leases.retire(lease);
    entry.strays.clear();
  }

  /** Revokes every lease but those of holds that are on their way to another process. */
  async close(): Promise<void> {
    for (const { detaching, leases } of this.entries.values()) {
      if (detaching) for (const lease of leases) this.leases.forget(lease);
    }
    this.entries.clear();
    this.watches.close();
    this.lookout.close();
    await this.leases.close();
    this.transport.close();
  }
}
