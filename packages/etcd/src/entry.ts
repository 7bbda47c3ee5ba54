import type { Claim } from '@holdfast/core';
import type { KeyRange } from './keys.js';
import type { Label } from './labels.js';
import type { Lease } from './leases.js';
import type { ClaimValue, StoredClaim } from './stored.js';

/**
 * What this process knows of a claim at the server.
 * - `unknown`: nothing there yet, or nobody can say.
 * - `waiting`: in the queue, behind `predecessor`, as seen at `revision`; or the heir of one that held until it went.
 * - `held`: the holder.
 */
export type EntryState =
  | { readonly kind: 'unknown' }
  | {
      readonly kind: 'waiting';
      readonly token: bigint;
      readonly predecessor: StoredClaim;
      readonly revision: bigint;
      readonly heir?: boolean;
    }
  | { readonly kind: 'held'; readonly token: bigint };

/** A claim of this process: its key, its leases, and what was promised to core. */
export class Entry {
  claim: Claim;
  readonly key: Buffer;
  readonly range: KeyRange;
  /** What its key is called after, until it is given back. A claim that was made elsewhere has none of ours. */
  label: Label | undefined;
  state: EntryState = { kind: 'unknown' };
  /** Revision of the last write of ours that was answered. */
  mod = 0n;
  /** Since when it has been held, on our wall clock: part of the value. */
  since = 0;
  /** The lease that a grant lives on, or will. */
  lease: Lease | undefined;
  /** The lease that keeps the place in the queue. */
  place: Lease | undefined;
  /** Every lease that the key may be on: those two, and any that a write without answer was meant to put it on. */
  readonly leases = new Set<Lease>();
  /** Leases on which a lost request may yet make the key, after it was deleted. */
  readonly strays = new Set<Lease>();
  /** An answer said that its key has gone, or was not made. */
  keyGone = false;
  /** It was serialized: it must outlive this process. */
  detaching = false;
  /** Giving it back failed: when its lease has gone there is nothing left to give back. */
  abandoned = false;
  /** How often giving it back had no answer. */
  unanswered = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(claim: Claim, key: Buffer, range: KeyRange, label?: Label) {
    this.claim = claim;
    this.key = key;
    this.range = range;
    this.label = label;
  }

  /** Operations on one claim follow one another: core may ask again while an unanswered request is still under way. */
  inTurn<T>(operation: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(operation);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  value(state: ClaimValue['state'], lease: Lease | undefined): ClaimValue {
    const { owner, metadata } = this.claim;
    const own = lease !== undefined && !lease.shared;
    return {
      state,
      owner,
      since: this.since,
      ...(metadata === undefined || state === 'tail' ? {} : { metadata }),
      ...(own ? { ownLease: true } : {}),
    };
  }

  /** The stored claim is this grant, whichever of our writes made it so. */
  isHeldAs(stored: StoredClaim | undefined): stored is StoredClaim {
    return (
      stored !== undefined &&
      this.state.kind === 'held' &&
      stored.state === 'held' &&
      stored.token === this.state.token &&
      stored.owner === this.claim.owner
    );
  }
}
