import type { ICompare, IKeyValue, IRequestOp, IResponseOp, ITxnRequest, ITxnResponse } from 'etcd3';
import type { KeyRange } from './keys.js';
import { type ClaimValue, decodeClaim, encodeClaim, type StoredClaim } from './stored.js';

/** What is put: the key, its value, and the lease that it lives on. */
export interface Put {
  readonly key: Buffer;
  readonly value: ClaimValue;
  readonly lease: string;
}

/** Revision of the store at which an answer is true: a watch from the next one misses nothing. */
export interface Seen {
  readonly revision: bigint;
}

/** What a claim meets when it comes. */
export type Entered = Seen &
  (
    | { readonly kind: 'taken' }
    /** Ours was there already. */
    | { readonly kind: 'present'; readonly own: StoredClaim | undefined }
    /** The oldest is undefined when that key is a foreign one. */
    | { readonly kind: 'refused'; readonly oldest: StoredClaim | undefined }
    | Queued
  );

/** What a claim meets that has joined the queue. */
export interface Queued extends Seen {
  readonly kind: 'queued';
  /** The one before us in the queue. Undefined where there is none any more. */
  readonly predecessor: StoredClaim | undefined;
  /** The first of all, if it was asked for. */
  readonly oldest: StoredClaim | undefined;
  /** There are foreign keys where claims should be. */
  readonly foreign: boolean;
  /** How many were there before us. */
  readonly ahead: number;
}

/** What a waiting claim meets when its turn may have come. */
export type Turned = Seen &
  (
    | { readonly kind: 'taken' }
    | {
        readonly kind: 'waiting';
        readonly own: StoredClaim | undefined;
        readonly oldest: StoredClaim | undefined;
        /** Those before us, the nearest first; the first {@link SIGHT} of them. */
        readonly older: readonly StoredClaim[];
        /** There are foreign keys among them. */
        readonly foreign: boolean;
      }
  );

/** How far ahead a waiter looks to tell its position. */
export const SIGHT = 20;

/**
 * Takes the lock where nobody holds it or waits.
 *
 * It is free for us when no key in the range has a lease: etcd compares an empty range as a key of zeros. So a foreign
 * key that somebody put among the claims, which has none, does not stand in the way.
 *
 * @param curious whether it looks who has it, where it is refused
 */
export function take(range: KeyRange, held: Put, { curious }: { readonly curious: boolean }): ITxnRequest {
  const looks = curious ? [one(held.key), oldest(range)] : [];
  return { compare: [isFree(range)], success: [put(held)], failure: looks };
}

export function taken(response: ITxnResponse): Entered {
  const revision = revisionOf(response);
  if (response.succeeded) return { kind: 'taken', revision };
  const [own, first] = response.responses.map(keyValues);
  if (own?.length === 1) return { kind: 'present', own: only(own), revision };
  return { kind: 'refused', oldest: only(first), revision };
}

/** Takes the lock where nobody holds it or waits, and joins the queue otherwise, unless ours is there already. */
export function join(range: KeyRange, held: Put, waiting: Put): ITxnRequest {
  const queueing = queueUp(range, waiting, [oldest(range)]);
  return { compare: [isFree(range)], success: [put(held)], failure: [{ request_txn: queueing }] };
}

/**
 * Joins the queue, unless ours is there already: for who knows that others wait.
 *
 * Every look at a whole range costs the server a read of all keys in it, and this has one where `join` has three.
 */
export function queueUp(range: KeyRange, waiting: Put, looks: readonly IRequestOp[] = []): ITxnRequest {
  return {
    compare: [{ key: waiting.key, result: 'Greater', target: 'Create', create_revision: 0 }],
    success: [one(waiting.key)],
    failure: [newest(range), ...looks, put(waiting)],
  };
}

export function joined(response: ITxnResponse): Entered {
  const revision = revisionOf(response);
  if (response.succeeded) return { kind: 'taken', revision };
  const queueing = response.responses[0]?.response_txn;
  if (queueing === undefined) throw new Error('etcd answered a transaction with another one');
  return queuedUp(queueing, revision);
}

export function queuedUp(
  { succeeded, responses }: Pick<ITxnResponse, 'succeeded' | 'responses'>,
  revision: bigint,
): Entered {
  const [first = [], second = []] = responses.map(keyValues);
  if (succeeded) return { kind: 'present', own: only(first), revision };
  const predecessor = only(first);
  const oldest = only(second);
  return {
    kind: 'queued',
    predecessor,
    oldest,
    foreign: (first.length > 0 && !predecessor) || (second.length > 0 && !oldest),
    ahead: Number(responses[0]?.response_range?.count ?? 0),
    revision,
  };
}

/**
 * Turns a waiting claim into the holder if it is the oldest; tells who is before it otherwise. One transaction, so that
 * nothing happens between the look at both keys and the grant. Putting a key again, on another lease, keeps its create
 * revision: its place, and its fencing token.
 */
export function turn(range: KeyRange, token: bigint, held: Put): ITxnRequest {
  const before = String(token - 1n);
  return {
    compare: [
      isStill(held.key, token),
      { ...range, result: 'Greater', target: 'Create', create_revision: before },
    ],
    success: [put(held)],
    failure: [one(held.key), oldest(range), nearestBefore(range, token)],
  };
}

/**
 * As `turn`, for the one behind a holder whose key was seen deleted: since that was the oldest, ours is it now, and a
 * look at the two keys says as much as a look at all.
 */
export function succeed(range: KeyRange, token: bigint, predecessor: StoredClaim, held: Put): ITxnRequest {
  const gone: ICompare = {
    key: predecessor.key,
    result: 'NotEqual',
    target: 'Create',
    create_revision: String(predecessor.token),
  };
  return { ...turn(range, token, held), compare: [isStill(held.key, token), gone] };
}

export function turned(response: ITxnResponse): Turned {
  const revision = revisionOf(response);
  if (response.succeeded) return { kind: 'taken', revision };
  const [own, first, older] = response.responses.map(keyValues);
  const claims = (older ?? []).flatMap((kv) => decodeClaim(kv) ?? []);
  const foreign = claims.length < (older?.length ?? 0);
  return { kind: 'waiting', own: only(own), oldest: only(first), older: claims, foreign, revision };
}

/** Puts the key again if nobody has written to it since `mod`. */
export function replace(claim: { readonly key: Buffer; readonly mod: bigint }, next: Put): ITxnRequest {
  return {
    compare: [isUntouched(claim)],
    success: [put(next)],
    failure: [one(claim.key)],
  };
}

/** Makes a waiting claim, which is known to be the first of ours, the holder: for a range with foreign keys in it. */
export function confirm(token: bigint, held: Put): ITxnRequest {
  return { compare: [isStill(held.key, token)], success: [put(held)], failure: [one(held.key)] };
}

/** Deletes the key if nobody has written to it since `mod`. */
export function remove(claim: { readonly key: Buffer; readonly mod: bigint }): ITxnRequest {
  return {
    compare: [isUntouched(claim)],
    success: [{ request_delete_range: { key: claim.key } }],
  };
}

/** Does something if nobody has written to the claim since it was read. */
export function onlyWhile(
  claim: { readonly key: Buffer; readonly mod: bigint },
  work: readonly IRequestOp[],
): ITxnRequest {
  return { compare: [isUntouched(claim)], success: [...work] };
}

/** A key that says, for a while, that a transaction was carried out. */
export interface Mark {
  readonly key: Buffer;
  readonly lease: string;
}

/** Deletes the claim, if the key still is the one with its token, whoever owns it by now; and leaves the mark. */
export function breakGrant({ key, token }: StoredClaim, mark: Mark): ITxnRequest {
  return {
    compare: [isStill(key, token)],
    success: [{ request_delete_range: { key } }, { request_put: { ...mark, value: Buffer.of() } }],
    failure: [one(mark.key)],
  };
}

/** Whether that was done, now or by an earlier sending of the same. */
export function broken(response: ITxnResponse): boolean {
  return response.succeeded || keyValues(response.responses[0]).length > 0;
}

/** Writes nothing, but may only be sent by whoever may read and write there. */
export function probe(range: KeyRange): ITxnRequest {
  return {
    compare: [{ key: range.key, result: 'Less', target: 'Version', version: 0 }],
    success: [{ request_put: { key: range.key } }],
    failure: [{ request_range: { ...range, count_only: true } }],
  };
}

/** Reads keys, all at one revision. etcd allows 128 operations in a transaction by default. */
export function read(keys: readonly Buffer[]): ITxnRequest {
  return { success: keys.map(one) };
}

export const READ_LIMIT = 100;

/** Finds the claim with this token, whatever its key, and the oldest one. */
export function findToken(range: KeyRange, token: bigint): ITxnRequest {
  const revision = String(token);
  const exactly = { min_create_revision: revision, max_create_revision: revision };
  return { success: [{ request_range: { ...range, ...exactly } }, oldest(range)] };
}

/** All claims of a name, the oldest first. */
export function queue(range: KeyRange): ITxnRequest {
  return { success: [{ request_range: { ...range, sort_target: 'Create', sort_order: 'Ascend' } }] };
}

/**
 * Many transactions as one. etcd tries the conditions of all before it does anything, so each must be about keys that
 * none of the others touches.
 */
export function together(requests: readonly ITxnRequest[]): ITxnRequest {
  return { success: requests.map((request_txn) => ({ request_txn })) };
}

/** The answer to each transaction in an answer to `together`. */
export function apart({ header, responses }: ITxnResponse): readonly ITxnResponse[] {
  return responses.map(({ response_txn }) => {
    if (response_txn === undefined) throw new Error('etcd answered a transaction with something else');
    return { ...response_txn, header };
  });
}

/** The outcome of a transaction that does something or else reads one key. */
export function outcome(
  response: ITxnResponse,
): Seen & { readonly done: boolean; readonly own: StoredClaim | undefined } {
  const own = response.succeeded ? undefined : only(keyValues(response.responses[0]));
  return { done: response.succeeded, own, revision: revisionOf(response) };
}

/** The claims that a transaction read, for each of its reads. */
export function claimsIn(response: ITxnResponse): readonly (readonly StoredClaim[])[] {
  return response.responses.map((read) => keyValues(read).flatMap((kv) => decodeClaim(kv) ?? []));
}

export function revisionOf(response: ITxnResponse): bigint {
  return BigInt(response.header.revision);
}

function put({ key, value, lease }: Put): IRequestOp {
  return { request_put: { key, value: encodeClaim(value), lease } };
}

function one(key: Buffer): IRequestOp {
  return { request_range: { key } };
}

function oldest(range: KeyRange): IRequestOp {
  return { request_range: { ...range, sort_target: 'Create', sort_order: 'Ascend', limit: 1 } };
}

function newest(range: KeyRange): IRequestOp {
  return { request_range: { ...range, sort_target: 'Create', sort_order: 'Descend', limit: 1 } };
}

function nearestBefore(range: KeyRange, token: bigint): IRequestOp {
  return {
    request_range: {
      ...range,
      sort_target: 'Create',
      sort_order: 'Descend',
      max_create_revision: String(token - 1n),
      limit: SIGHT,
    },
  };
}

function isFree(range: KeyRange): ICompare {
  return { ...range, result: 'Equal', target: 'Lease', lease: 0 };
}

function isUntouched({ key, mod }: { readonly key: Buffer; readonly mod: bigint }): ICompare {
  return { key, result: 'Equal', target: 'Mod', mod_revision: String(mod) };
}

function isStill(key: Buffer, token: bigint): ICompare {
  return { key, result: 'Equal', target: 'Create', create_revision: String(token) };
}

function keyValues(response: IResponseOp | undefined): readonly IKeyValue[] {
  return response?.response_range?.kvs ?? [];
}

function only(kvs: readonly IKeyValue[] | undefined): StoredClaim | undefined {
  const [kv] = kvs ?? [];
  return kv === undefined ? undefined : decodeClaim(kv);
}
