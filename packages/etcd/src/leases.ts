import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { type Clock, sleep, type Timer } from '@holdfast/core';
import { failureOf } from './errors.js';
import type { Transport } from './transport.js';

/** A shared lease that serves nobody is kept for this long, for the next claim, ms. */
const IDLE = 1_000;
/** A keep-alive is given up and sent again after a sixth of the ttl, but not sooner than this, ms. */
const SHORTEST_PATIENCE = 1_000;
/** The server looks for expired leases twice a second; after a change of leader it gives them more time, ms. */
const LAPSE = 10_000;

/** A lease at the server, and who needs it here. */
export class Lease {
  readonly id: string;
  /** As the server granted it, ms. */
  readonly ttl: number;
  /** Kept alive by a timer, and used by many. */
  readonly shared: boolean;
  /** When the last answered grant or keep-alive was sent: the server counts the ttl from a later moment. */
  from: number;
  /** No claim is put on it any more: its users move off, and then it is revoked. */
  retired = false;
  readonly users = new Set<object>();
  timer: Timer | undefined;
  refreshing: Promise<void> | undefined;
  /** When the last keep-alive was sent, answered or not: the server may hold the lease for a ttl from then. */
  lastSent: number;

  constructor(id: string, ttl: number, from: number, shared: boolean) {
    this.id = id;
    this.ttl = ttl;
    this.from = from;
    this.lastSent = from;
    this.shared = shared;
  }

  /** The server keeps it at least until then, on our monotonic clock, before any margin. */
  get validUntil(): number {
    return this.from + this.ttl;
  }
}

/** What the leases' owner wants to know. */
export interface LeaseEvents {
  /** The server says that it does not know the lease. */
  gone(lease: Lease): void;
  /** Something failed that no caller waits for. */
  report(error: Error): void;
}

/**
 * The leases of one backend.
 *
 * A shared lease carries every claim of one ttl: one keep-alive for all of them. A lease of its own carries a single key
 * whose life must not depend on others: a hold that is not renewed, the tail of one, one that was serialized.
 *
 * A lease is retired first and revoked when its last user has left, so that no claim is lost with it. Revoking is also
 * what makes giving up certain: a transaction that was sent, went unanswered and arrives late fails once its lease has
 * gone.
 */
export class Leases {
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #events: LeaseEvents;
  readonly #live = new Set<Lease>();
  readonly #current = new Map<number, Promise<Lease>>();
  readonly #ready = new Map<number, Lease>();
  readonly #closing = new AbortController();
  readonly #background = new Set<Promise<void>>();
  #shortest = 0;

  constructor(transport: Transport, clock: Clock, events: LeaseEvents) {
    this.#transport = transport;
    this.#clock = clock;
    this.#events = events;
    // As many listen as leases are being revoked.
    setMaxListeners(0, this.#closing.signal);
  }

  /** The shared lease for this ttl, used by `user` until dropped. */
  async shared(ttl: number, user: object): Promise<Lease> {
    const seconds = this.effective(ttl) / 1000;
    for (;;) {
      const current = this.#currentFor(seconds);
      const lease = await current;
      if (!lease.retired) {
        this.#use(lease, user);
        return lease;
      }
      if (this.#current.get(seconds) === current) this.#forgetCurrent(seconds);
    }
  }

  /** As `shared`, if there is such a lease already. */
  sharedIfAny(ttl: number, user: object): Lease | undefined {
    const lease = this.#ready.get(this.effective(ttl) / 1000);
    if (lease === undefined || lease.retired) return undefined;
    this.#use(lease, user);
    return lease;
  }

  /** A lease that serves `user` alone. Nobody keeps it alive unless asked to. */
  async own(ttl: number, user: object): Promise<Lease> {
    const lease = await this.#grant(this.effective(ttl) / 1000, false);
    this.#use(lease, user);
    return lease;
  }

  /** Keeps it alive now, once for all who ask at the same time. Rejects when the server does not answer. */
  refresh(lease: Lease): Promise<void> {
    lease.refreshing ??= this.#refresh(lease).finally(() => {
      lease.refreshing = undefined;
    });
    return lease.refreshing;
  }

  /** As `refresh`, unless it was kept alive within the last `age` ms. */
  async atMost(lease: Lease, age: number): Promise<void> {
    if (this.#clock.now() - lease.from > age) await this.refresh(lease);
  }

  drop(lease: Lease, user: object): void {
    if (!lease.users.delete(user) || lease.users.size > 0) return;
    if (!lease.shared || lease.retired) {
      this.#discard(lease);
      return;
    }
    lease.timer?.cancel();
    lease.timer = this.#clock.setTimer(IDLE, () => this.#discard(lease));
  }

  /** No new users: those that it has move to another one when they are next renewed. */
  retire(lease: Lease): void {
    lease.retired = true;
    if (lease.users.size === 0) this.#discard(lease);
  }

  /** It goes on without us, until it lapses. */
  forget(lease: Lease): void {
    lease.timer?.cancel();
    lease.users.clear();
    this.#live.delete(lease);
  }

  /** Revokes whatever is left, and waits for that. */
  async close(): Promise<void> {
    this.#closing.abort();
    for (const lease of [...this.#live]) this.#discard(lease);
    while (this.#background.size > 0) await Promise.all(this.#background);
  }

  /** Asks for the shortest ttl that this server grants, ms. */
  async findShortest(timeout: number): Promise<number> {
    const lease = await this.#grant(1, false, timeout);
    this.#discard(lease);
    this.#shortest = lease.ttl;
    return lease.ttl;
  }

  /** The ttl that a lease for this one will have: etcd counts in whole seconds, and not below a minimum. */
  effective(ttl: number): number {
    return Math.max(this.#shortest, Math.ceil(ttl / 1000) * 1000);
  }

  /** Revokes a lease that another process made for a single key, which it carries no more. */
  revokeById(id: string): void {
    this.#revoke(new Lease(id, 0, this.#clock.now(), false));
  }

  /** How many leases are alive at the server on our account. */
  get size(): number {
    return this.#live.size + this.#background.size;
  }

  #currentFor(seconds: number): Promise<Lease> {
    const present = this.#current.get(seconds);
    if (present !== undefined) return present;
    const granted = this.#grant(seconds, true);
    this.#current.set(seconds, granted);
    granted.then(
      (lease) => this.#ready.set(seconds, lease),
      () => this.#current.delete(seconds),
    );
    return granted;
  }

  async #grant(seconds: number, shared: boolean, timeout?: number): Promise<Lease> {
    // Chosen here, so that a grant whose answer was lost can still be taken back.
    const id = newLeaseId();
    const sent = this.#clock.now();
    try {
      const { value, sentAt } = await this.#transport.call(
        'grant a lease',
        (rpc, call) => rpc.leaseGrant({ ID: id, TTL: seconds }, call),
        timeout,
      );
      return this.#granted(new Lease(id, Number(value.TTL) * 1000, sentAt, shared));
    } catch (error) {
      if (failureOf(error) === 'lease-exists') return this.#granted(await this.#findGranted(id, shared));
      this.#revoke(new Lease(id, seconds * 1000, sent, false));
      throw error;
    }
  }

  /** An earlier try of ours made it. */
  async #findGranted(id: string, shared: boolean): Promise<Lease> {
    const { value: ttl, sentAt } = await this.#transport.keepAlive(id);
    if (ttl === 0) throw new Error('a lease lapsed before its grant was known');
    return new Lease(id, ttl, sentAt, shared);
  }

  #granted(lease: Lease): Lease {
    this.#live.add(lease);
    return lease;
  }

  #use(lease: Lease, user: object): void {
    const idle = lease.users.size === 0;
    lease.users.add(user);
    if (idle) this.#schedule(lease);
  }

  async #refresh(lease: Lease): Promise<void> {
    lease.lastSent = this.#clock.now();
    const patience = Math.max(SHORTEST_PATIENCE, lease.ttl / 6);
    const { value: ttl, sentAt } = await this.#transport.keepAlive(lease.id, patience);
    if (ttl > 0) {
      lease.from = Math.max(lease.from, sentAt);
      this.#schedule(lease);
      return;
    }
    this.retire(lease);
    this.#schedule(lease, lease.ttl / 3);
    this.#events.gone(lease);
  }

  /** The next keep-alive: a third of the ttl after the last answered one, and sooner after a failure. */
  #schedule(lease: Lease, pause?: number): void {
    // Without users it is about to be revoked, and that timer stays.
    if (!lease.shared || lease.users.size === 0 || this.#closing.signal.aborted) return;
    lease.timer?.cancel();
    const jitter = 1 - Math.random() * 0.1;
    const due = pause ?? lease.from + (lease.ttl / 3) * jitter - this.#clock.now();
    lease.timer = this.#clock.setTimer(Math.max(0, due), () => {
      this.refresh(lease).catch(() => this.#schedule(lease, Math.min(1_000, lease.ttl / 10) * jitter));
    });
  }

  #discard(lease: Lease): void {
    lease.retired = true;
    lease.timer?.cancel();
    if (!this.#live.delete(lease)) return;
    if (this.#ready.get(lease.ttl / 1000) === lease) this.#forgetCurrent(lease.ttl / 1000);
    this.#revoke(lease);
  }

  #forgetCurrent(seconds: number): void {
    this.#current.delete(seconds);
    this.#ready.delete(seconds);
  }

  /**
   * Revokes it for certain: until the server has answered, or the lease must have lapsed. Once this closes it is tried
   * twice: a connection that has silently died shows at the first.
   */
  #revoke(lease: Lease): void {
    const revoked = this.#revokeUntilLapsed(lease).finally(() => this.#background.delete(revoked));
    this.#background.add(revoked);
  }

  async #revokeUntilLapsed(lease: Lease): Promise<void> {
    const { signal: closing } = this.#closing;
    let triesWhileClosing = 0;
    for (let pause = 100; ; pause = Math.min(pause * 2, 5_000)) {
      try {
        if (closing.aborted) triesWhileClosing++;
        await this.#transport.call('revoke a lease', (rpc, call) => rpc.leaseRevoke(lease.id, call));
        return;
      } catch (error) {
        const failure = failureOf(error);
        if (failure === 'lease-gone' || triesWhileClosing > 1) return;
        if (failure === 'refused') return this.#events.report(error as Error);
        if (this.#clock.now() > lease.lastSent + lease.ttl + LAPSE) return;
        await sleep(this.#clock, pause, closing);
      }
    }
  }
}

function newLeaseId(): string {
  // A positive 64-bit integer. 0 would let the server choose.
  return String((randomBytes(8).readBigUInt64BE() >> 1n) | 1n);
}
