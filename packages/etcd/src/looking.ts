import type { LockState } from '@holdfast/core';
import { failureOf } from './errors.js';
import type { Session } from './session.js';
import { decodeClaim, type StoredClaim } from './stored.js';

/** How many keys one request of `list` reads. */
const PAGE = 500;

/** What there is at the server, for people. */
export class Looking {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  async inspect(name: string): Promise<LockState> {
    const claims = await this.#session.queue(name);
    return stateOf(name, claims, await this.#timeLeft(claims[0]));
  }

  async *list(prefix: string): AsyncIterable<LockState> {
    // Holds of one process and ttl share a lease: it is asked about once.
    const times = new Map<string, number | undefined>();
    for await (const [name, claims] of this.#byName(prefix)) {
      const [holder] = claims;
      const lease = holder?.lease ?? '0';
      if (!times.has(lease)) times.set(lease, await this.#timeLeft(holder));
      yield stateOf(name, claims, times.get(lease));
    }
  }

  /** The claims of a name follow one another in the order of keys, so one name is complete when the next begins. */
  async *#byName(prefix: string): AsyncIterable<[name: string, claims: readonly StoredClaim[]]> {
    let name: string | undefined;
    let claims: StoredClaim[] = [];
    for await (const claim of this.#all(prefix)) {
      const parsed = this.#session.keys.parse(claim.key);
      if (parsed === undefined) continue;
      if (name !== undefined && parsed.name !== name) {
        yield [name, inOrder(claims)];
        claims = [];
      }
      name = parsed.name;
      claims.push(claim);
    }
    if (name !== undefined) yield [name, inOrder(claims)];
  }

  async *#all(prefix: string): AsyncIterable<StoredClaim> {
    const { keys, transport } = this.#session;
    const range = keys.names(prefix);
    for (let { key } = range; ; ) {
      const from = { ...range, key, limit: PAGE };
      const { value } = await transport.call('list locks', (rpc, call) => rpc.range(from, call));
      for (const kv of value.kvs) {
        const claim = decodeClaim(kv);
        if (claim !== undefined) yield claim;
      }
      const last = value.kvs[value.kvs.length - 1];
      if (!value.more || last === undefined) return;
      key = Buffer.concat([last.key, Buffer.of(0)]);
    }
  }

  async #timeLeft(holder: StoredClaim | undefined): Promise<number | undefined> {
    if (holder === undefined || holder.state === 'waiting') return undefined;
    try {
      const { value } = await this.#session.transport.call('read a lease', (rpc, call) =>
        rpc.leaseTimeToLive(holder.lease, call),
      );
      return Math.max(0, Number(value.TTL)) * 1000;
    } catch (error) {
      if (failureOf(error) === 'lease-gone') return 0;
      throw error;
    }
  }
}

function inOrder(claims: readonly StoredClaim[]): readonly StoredClaim[] {
  return [...claims].sort((one, other) => (one.token < other.token ? -1 : 1));
}

function stateOf(name: string, claims: readonly StoredClaim[], expiresIn: number | undefined): LockState {
  const waiters = claims
    .filter(({ state }) => state === 'waiting')
    .map(({ owner }, index) => ({ owner, position: index + 1 }));
  const [holder] = claims;
  if (holder === undefined || holder.state === 'waiting') return { name, held: false, waiters };
  return {
    name,
    held: true,
    ...(holder.state === 'tail' ? {} : { owner: holder.owner }),
    fencingToken: holder.token,
    acquiredAt: new Date(holder.since),
    ...(expiresIn === undefined ? {} : { expiresIn }),
    ...(holder.metadata === undefined ? {} : { metadata: holder.metadata }),
    waiters,
  };
}
