import type { Grant, LockBackend } from './backend.js';
import { MAX_DURATION } from './duration.js';
import { InvalidArgumentError } from './errors.js';
import type { Hold, HoldTerms } from './hold.js';
import { checkMetadata, checkName } from './names.js';
import { isToken } from './token.js';

/** A hold on its way to another process. */
export interface Parcel {
  readonly grant: Grant;
  readonly terms: HoldTerms;
}

const VERSION = 1;
const OWNER = /^[\x21-\x7e]{1,256}$/;

/** Puts a hold into a string. */
export function pack(backend: LockBackend, hold: Hold, wall: number): string {
  const { claim, ttl, fencingToken } = hold.grant;
  const parcel = {
    v: VERSION,
    backend: backend.name,
    prefix: backend.prefix,
    name: claim.name,
    owner: claim.owner,
    metadata: claim.metadata,
    token: String(fencingToken),
    ttl,
    renew: hold.renew,
    minHold: hold.minHold,
    maxHoldLeft: hold.maxHoldLeft === Infinity ? undefined : hold.maxHoldLeft,
    at: wall,
  };
  return toBase64Url(JSON.stringify(parcel));
}

/**
 * Takes a hold out of a string.
 *
 * What is left of `maxHold` shrinks by the wall-clock time on the way, never grows: two machines' clocks may differ, so
 * it ends at the latest `maxHold` after the adoption, and validity does not depend on it.
 *
 * @throws InvalidArgumentError when the string is not one of ours, or of another backend or prefix
 */
export function unpack(backend: LockBackend, serialized: unknown, wall: number): Parcel {
  const parcel = parse(serialized);
  if (parcel.backend !== backend.name || parcel.prefix !== backend.prefix) {
    const from = `${show(parcel.backend)} with prefix ${show(parcel.prefix)}`;
    throw new InvalidArgumentError(
      'serialized',
      `a hold of ${from}`,
      `a hold of ${backend.name} with prefix ${show(backend.prefix)}`,
    );
  }
  const { name, owner, metadata, token, ttl, renew, minHold, maxHoldLeft, at } = parcel;
  if (typeof owner !== 'string' || !OWNER.test(owner)) throw malformed(serialized);
  if (typeof token !== 'string' || !/^\d{1,19}$/.test(token) || !isToken(BigInt(token)))
    throw malformed(serialized);
  if (!isSpan(ttl) || ttl <= 0 || !isSpan(minHold) || !isSpan(at) || typeof renew !== 'boolean')
    throw malformed(serialized);
  if (maxHoldLeft !== undefined && typeof maxHoldLeft !== 'number') throw malformed(serialized);
  checkName(name);
  if (metadata !== undefined) checkMetadata(metadata);
  const claim = { name, owner, ttl, queue: false, renew, ...(metadata === undefined ? {} : { metadata }) };
  const onTheWay = Math.max(0, wall - at);
  const maxHold = maxHoldLeft === undefined ? Infinity : Math.max(0, maxHoldLeft - onTheWay);
  return { grant: { claim, fencingToken: BigInt(token), ttl }, terms: { renew, minHold, maxHold } };
}

function parse(serialized: unknown): Record<string, unknown> {
  if (typeof serialized !== 'string') throw malformed(serialized);
  try {
    const parcel: unknown = JSON.parse(fromBase64Url(serialized));
    if (typeof parcel === 'object' && parcel !== null && (parcel as { v?: unknown }).v === VERSION) {
      return parcel as Record<string, unknown>;
    }
  } catch {
    // Said below, without the string: it lets whoever reads it take the lock over.
  }
  throw malformed(serialized);
}

function malformed(serialized: unknown): InvalidArgumentError {
  const given = typeof serialized === 'string' ? `a text of ${serialized.length} characters` : serialized;
  return new InvalidArgumentError('serialized', given, 'what serialize() returned');
}

function isSpan(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= Math.max(MAX_DURATION, Number.MAX_SAFE_INTEGER);
}

function show(value: unknown): string {
  return value === undefined ? 'none' : JSON.stringify(value);
}

function toBase64Url(text: string): string {
  const bytes = new TextEncoder().encode(text);
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

function fromBase64Url(text: string): string {
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return new TextDecoder('utf-8', { fatal: true }).decode(
    Uint8Array.from(binary, (char) => char.charCodeAt(0)),
  );
}
