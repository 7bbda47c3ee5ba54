import type { Claim, Clock, Contended, Diagnosis, Grant, LockState, Renewal } from '@holdfast/core';
import type { Interest } from './interest.js';

/**
 * What the backend asks of a database. Each method is one statement or one short transaction, runs outside any
 * transaction of the caller's, holds a connection for no longer than that, and rejects with a `BackendError`.
 *
 * The rules behind them, for every database:
 * - *take*: mine, or (free or expired, and no live waiter with a smaller ticket); without a ticket any live waiter
 *   blocks. Mine keeps the token; expiry becomes max(present, now + ttl). Else the token is max(previous + 1, now).
 * - a refused claim that queues takes again after it has enqueued: the lock may have been freed between the two.
 * - a grant removes the claim's own place. A release removes the place first, then frees the lock and clears its
 *   owner (an expiry alone would let a late renewal revive it), and then, always, names the head of a free lock.
 * - a renewal never re-creates and never shortens.
 */
export interface LockStore {
  /** Waiters get messages at present, through `StoreSession.woken`. */
  readonly pushes: boolean;
  /** Connects, brings the schema up to date where it may, and says what was found. */
  open(session: StoreSession): Promise<StoreFacts>;
  attempt(claim: Claim, interest: Interest): Promise<Grant | Refusal>;
  renew(grants: readonly Grant[]): Promise<readonly Renewal[]>;
  /** `late`: an attempt of this claim may still reach the database after this, and must find the claim gone. */
  release(claim: Claim, options: { readonly keepFor: number; readonly late: boolean }): Promise<Freed>;
  /** Forgets a claim that could not be given back. */
  letLapse(claim: Claim): void;
  adopt(grant: Grant, newOwner: string): Promise<boolean>;
  inspect(name: string): Promise<LockState>;
  list(prefix: string): AsyncIterable<LockState>;
  forceRelease(name: string, expected: bigint | undefined): Promise<Freed>;
  /** Whether the last grant that was broken by force was this one. */
  wasForced(name: string, token: bigint): Promise<boolean>;
  /** Keeps the places of these claims alive and answers the owners whose place is still there. */
  refresh(claims: readonly Claim[]): Promise<ReadonlySet<string>>;
  /** How things stand for each of these places, in order. Reads only. */
  peek(places: readonly Place[]): Promise<readonly Outlook[]>;
  /** Removes what nobody needs, at most `limit` rows of each kind, and answers how many it removed. */
  sweep(retention: number, limit: number): Promise<number>;
  /** What the database and its settings mean for locks. */
  diagnose(): Promise<readonly Diagnosis[]>;
  /** Ends every timer and closes what the store opened itself. */
  close(): Promise<void>;
}

/** What the backend lends to a store when it opens it. */
export interface StoreSession {
  readonly clock: Clock;
  /** ms that one call may take in all, retries included. */
  readonly commandTimeout: number;
  /** Somebody freed the lock and this owner is the head of its queue. */
  readonly woken: (owner: string) => void;
  /** Messages may have been missed, or something may have changed: whoever may be the head should look. */
  readonly disturbed: () => void;
  /** A fault that no call can carry. */
  readonly report: (error: Error) => void;
}

/** What a store found when it opened. */
export interface StoreFacts {
  /** The database in use, such as `mariadb`. */
  readonly product: string;
  /** Processes on other machines meet the same locks. */
  readonly crossProcess: boolean;
}

/** A refused claim. With a ticket it has a place in the queue. */
export interface Refusal extends Contended {
  readonly ticket?: number;
}

/** The place of a claim in a queue. */
export interface Place {
  readonly name: string;
  readonly ticket: number;
}

/** What a waiter sees from its place. */
export interface Outlook {
  /** The lock is free and nobody alive is before us. */
  readonly turn: boolean;
  /** Live waiters before us, counted no further than {@link FAR}. */
  readonly ahead: number;
  /** ms until the present hold ends unless renewed; 0 when free. */
  readonly expiresIn: number;
}

/** The outcome of a release. */
export interface Freed {
  /** This call removed a grant. */
  readonly freed: boolean;
  /** The lock is free and this owner's turn has come. */
  readonly next?: string;
}

/** A place this far back in the queue is not counted exactly. */
export const FAR = 1000;

/** ms a waiter's place stays alive without a refresh. */
export const LIVENESS = 3600;

/** ms between refreshes: a third of the liveness, so that one lost refresh costs nothing. */
export const REFRESH = LIVENESS / 3;
