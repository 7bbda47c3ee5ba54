import type { IKeyValue } from 'etcd3';

/**
 * - `waiting`: in the queue, on the short lease that keeps the place.
 * - `held`: the holder, on a lease of its ttl.
 * - `tail`: given back, but taken for as long as `minHold` says.
 */
export type ClaimState = 'waiting' | 'held' | 'tail';

/** The value of a claim's key. */
export interface ClaimValue {
  readonly state: ClaimState;
  /** Who holds or waits now. */
  readonly owner: string;
  /** When this state began, ms since the epoch on the writer's wall clock: for people. */
  readonly since: number;
  readonly metadata?: string;
  /** The lease serves this key alone, so that whoever takes the key away may revoke it. */
  readonly ownLease?: boolean;
}

/** A claim as it is at the server. */
export interface StoredClaim extends ClaimValue {
  readonly key: Buffer;
  /** The create revision: the place in the queue, and the fencing token. */
  readonly token: bigint;
  /** The revision of the last write to the key: whoever compares it knows that nobody has touched the key since. */
  readonly mod: bigint;
  readonly lease: string;
}

const VERSION = 1;

export function encodeClaim(value: ClaimValue): Buffer {
  const { state, owner, since, metadata, ownLease } = value;
  return Buffer.from(JSON.stringify({ holdfast: VERSION, state, owner, since, metadata, ownLease }));
}

/** Undefined for a key that somebody else put among ours. */
export function decodeClaim(kv: IKeyValue): StoredClaim | undefined {
  const value = parse(kv.value);
  // A claim without a lease would stay for ever: none of ours is.
  if (value === undefined || kv.lease === '0') return undefined;
  return {
    ...value,
    key: kv.key,
    token: BigInt(kv.create_revision),
    mod: BigInt(kv.mod_revision),
    lease: kv.lease,
  };
}

function parse(bytes: Buffer): ClaimValue | undefined {
  let json: unknown;
  try {
    json = JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
  if (typeof json !== 'object' || json === null) return undefined;
  const { holdfast, state, owner, since, metadata, ownLease } = json as Record<string, unknown>;
  if (holdfast !== VERSION || typeof owner !== 'string' || typeof since !== 'number') return undefined;
  if (state !== 'waiting' && state !== 'held' && state !== 'tail') return undefined;
  return {
    state,
    owner,
    since,
    ...(typeof metadata === 'string' ? { metadata } : {}),
    ...(ownLease === true ? { ownLease } : {}),
  };
}
