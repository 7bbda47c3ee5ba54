import { processIdentity } from '#platform';

const identity = processIdentity().replace(/[^A-Za-z0-9.:-]/g, '-');

/** Random bytes are fetched in one go for many owners: asking for each costs more than all the rest of an acquisition. */
const pool = new Uint8Array(4096);
const BYTES = 12;
let used = pool.length;

/**
 * A fresh owner: host, process and a random part of 96 bits. Fresh for each acquisition, since a late release of an
 * earlier acquisition with the same owner would act on the later one.
 */
export function newOwner(): string {
  if (used + BYTES > pool.length) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  let random = '';
  for (const end = used + BYTES; used < end; used++) random += HEX[pool[used] ?? 0];
  return `${identity}:${random}`;
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
