import type { BackendHost, Claim, Contended, Grant, LockBackend, Renewal } from '../backend.js';
import { systemClock } from '../clock.js';
import type { Capabilities, LockState } from '../locks.js';
import { checkPrefix } from '../names.js';
import { type Entry, first, GRACE, MemoryStore } from './store.js';

/** Options of {@link memoryBackend}. */
export interface MemoryBackendOptions {
  /** Backends on the same store meet the same locks. Default: a store of its own. */
  readonly store?: MemoryStore;
  /** Isolates tenants of a shared store. Default `holdfast`. */
  readonly prefix?: string;
}

const CAPABILITIES: Capabilities = {
  fairness: 'fifo',
  wake: 'push',
  expiry: 'server-ttl',
  consistency: 'in-process',
  crossProcess: false,
  transferable: true,
  minHold: 'session',
  grace: GRACE,
  // Less would leave no validity after the margin.
  ttl: { min: 10, max: Number.MAX_SAFE_INTEGER, granularity: 0 },
};

/**
 * Locks within this process: the reference that the other backends are compared with, and the simplest code that
 * keeps every promise. It leaves nothing behind for a name that is free.
 */
export function memoryBackend(options: MemoryBackendOptions = {}): LockBackend {
  return new MemoryBackend(options);
}

class MemoryBackend implements LockBackend {
  readonly name = 'memory';
  readonly prefix: string;
  #store: MemoryStore | undefined;
  #host: BackendHost | undefined;

  constructor({ store, prefix = 'holdfast' }: MemoryBackendOptions) {
    checkPrefix(prefix);
    this.prefix = prefix;
    this.#store = store;
  }

  async open(host?: BackendHost): Promise<Capabilities> {
    this.#host = host;
    this.#store ??= new MemoryStore(host?.clock ?? systemClock);
    return CAPABILITIES;
  }

  twin(): LockBackend {
    return new MemoryBackend({ store: this.#opened(), prefix: this.prefix });
  }

  async attempt(claim: Claim): Promise<Grant | Contended> {
    const store = this.#opened();
    const key = this.#key(claim.name);
    const entry = store.find(key) ?? store.make(key);
    const now = store.clock.now();
    const { holder } = entry;
    if (holder?.owner === claim.owner) {
      // Asking again never shortens: a delayed, shorter request must not cut the time that a later one was given.
      holder.expiresAt = Math.max(holder.expiresAt, now + claim.ttl);
      return { claim, fencingToken: holder.token, ttl: claim.ttl };
    }
    const head = first(entry);
    if (holder === undefined && (head === undefined || head.owner === claim.owner))
      return this.#take(entry, claim, now);
    const position = claim.queue ? this.#join(entry, claim.owner, now) : undefined;
    store.settle(entry);
    return {
      ...(holder?.owner === undefined ? {} : { holder: { owner: holder.owner, since: holder.acquiredAt } }),
      ...(position === undefined ? {} : { position }),
      ...(holder === undefined ? {} : { retryAfter: holder.expiresAt - now }),
    };
  }

  #take(entry: Entry, claim: Claim, now: number): Grant {
    const store = this.#opened();
    const host = this.#host;
    const token = store.mintToken();
    entry.queue.delete(claim.owner);
    entry.holder = {
      owner: claim.owner,
      token,
      acquiredAt: new Date(store.clock.wall()),
      metadata: claim.metadata,
      expiresAt: now + claim.ttl,
      lost: host === undefined ? undefined : (reason) => host.lost(claim.owner, reason),
    };
    store.settle(entry);
    return { claim, fencingToken: token, ttl: claim.ttl };
  }

  #join(entry: Entry, owner: string, now: number): number {
    const present = entry.queue.get(owner);
    if (present === undefined) {
      entry.queue.set(owner, { owner, aliveUntil: now + GRACE, wake: undefined, woken: false });
      return entry.queue.size;
    }
    present.aliveUntil = now + GRACE;
    return positionOf(entry, owner);
  }

  async awaitTurn(claim: Claim, _contended: Contended, signal: AbortSignal): Promise<void> {
    const store = this.#opened();
    const entry = store.find(this.#key(claim.name));
    const waiter = entry?.queue.get(claim.owner);
    // A waiter that lost its place asks again, and so joins at the end.
    if (entry === undefined || waiter === undefined || signal.aborted) return;
    if (waiter.woken) {
      waiter.woken = false;
      waiter.aliveUntil = store.clock.now() + GRACE;
      return;
    }
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        signal.removeEventListener('abort', wake);
        if (waiter.wake === wake) waiter.wake = undefined;
        waiter.aliveUntil = store.clock.now() + GRACE;
        resolve();
      };
      waiter.wake = wake;
      signal.addEventListener('abort', wake, { once: true });
    });
  }

  async renew(grants: readonly Grant[]): Promise<readonly Renewal[]> {
    return grants.map((grant) => this.#prolong(grant, grant.ttl));
  }

  async extend(grant: Grant, ttl: number): Promise<Renewal> {
    return this.#prolong(grant, ttl);
  }

  #prolong(grant: Grant, ttl: number): Renewal {
    const store = this.#opened();
    const holder = store.find(this.#key(grant.claim.name))?.holder;
    if (holder?.owner !== grant.claim.owner || holder.token !== grant.fencingToken) return { renewed: false };
    holder.expiresAt = Math.max(holder.expiresAt, store.clock.now() + ttl);
    return { renewed: true, ttl };
  }

  async release(claim: Claim, options: { readonly keepFor?: number } = {}): Promise<boolean> {
    const store = this.#opened();
    const entry = store.find(this.#key(claim.name));
    if (entry === undefined) return false;
    entry.queue.delete(claim.owner);
    const { holder } = entry;
    const mine = holder?.owner === claim.owner;
    if (mine) {
      const keepFor = options.keepFor ?? 0;
      entry.holder =
        keepFor > 0
          ? {
              ...holder,
              owner: undefined,
              metadata: undefined,
              lost: undefined,
              expiresAt: store.clock.now() + keepFor,
            }
          : undefined;
    }
    store.settle(entry);
    return mine;
  }

  async adopt(grant: Grant, newOwner: string): Promise<Grant | undefined> {
    const store = this.#opened();
    const host = this.#host;
    const entry = store.find(this.#key(grant.claim.name));
    const holder = entry?.holder;
    if (entry === undefined || holder === undefined || holder.token !== grant.fencingToken) return undefined;
    if (holder.owner !== grant.claim.owner && holder.owner !== newOwner) return undefined;
    const expiresAt = Math.max(holder.expiresAt, store.clock.now() + grant.ttl);
    const lost =
      host === undefined
        ? undefined
        : (reason: Parameters<BackendHost['lost']>[1]) => host.lost(newOwner, reason);
    entry.holder = { ...holder, owner: newOwner, expiresAt, lost };
    store.settle(entry);
    return { ...grant, claim: { ...grant.claim, owner: newOwner } };
  }

  async inspect(name: string): Promise<LockState> {
    const entry = this.#opened().find(this.#key(name));
    return entry === undefined ? { name, held: false, waiters: [] } : this.#state(name, entry);
  }

  async *list(prefix = ''): AsyncIterable<LockState> {
    const store = this.#opened();
    const start = this.#key(prefix);
    for (const key of [...store.entries.keys()]) {
      if (!key.startsWith(start)) continue;
      const entry = store.find(key);
      if (entry !== undefined) yield this.#state(key.slice(this.#key('').length), entry);
    }
  }

  async forceRelease(name: string, expected?: bigint): Promise<boolean> {
    const store = this.#opened();
    const entry = store.find(this.#key(name));
    const holder = entry?.holder;
    if (entry === undefined || holder === undefined) return false;
    if (expected !== undefined && holder.token !== expected) return false;
    entry.holder = undefined;
    store.forced = { key: this.#key(name), token: holder.token };
    store.settle(entry);
    holder.lost?.('forced');
    return true;
  }

  async wasForced(name: string, token: bigint): Promise<boolean> {
    const { forced } = this.#opened();
    return forced?.key === this.#key(name) && forced.token === token;
  }

  async close(): Promise<void> {
    this.#store?.rest();
  }

  #state(name: string, entry: Entry): LockState {
    const { holder } = entry;
    const waiters = [...entry.queue.keys()].map((owner, index) => ({ owner, position: index + 1 }));
    if (holder === undefined) return { name, held: false, waiters };
    return {
      name,
      held: true,
      ...(holder.owner === undefined ? {} : { owner: holder.owner }),
      fencingToken: holder.token,
      acquiredAt: holder.acquiredAt,
      expiresIn: holder.expiresAt - this.#opened().clock.now(),
      ...(holder.metadata === undefined ? {} : { metadata: holder.metadata }),
      waiters,
    };
  }

  #key(name: string): string {
    return `${this.prefix}\u0000${name}`;
  }

  #opened(): MemoryStore {
    if (this.#store === undefined) throw new Error('open() comes first');
    return this.#store;
  }
}

function positionOf(entry: Entry, owner: string): number {
  let position = 0;
  for (const waiting of entry.queue.keys()) {
    position++;
    if (waiting === owner) break;
  }
  return position;
}
