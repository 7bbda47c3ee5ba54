import { createHash } from 'node:crypto';
import { Recent } from './recent.js';

/** Names whose digests are remembered: a digest costs as much as a tenth of a statement. */
const REMEMBERED = 1000;

/** The keys of one prefix's rows. */
export class Keys {
  readonly #prefix: string;
  readonly #recent = new Recent<Buffer>(REMEMBERED);

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  of(name: string): Buffer {
    const known = this.#recent.get(name);
    if (known !== undefined) return known;
    const key = keyOf(this.#prefix, name);
    this.#recent.set(name, key);
    return key;
  }
}

/**
 * The key of a name's row: a digest, so that no collation, padding, length or truncation of the database can make
 * two names meet or one name split. The prefix cannot contain U+0000, so that no two pairs give one input.
 */
export function keyOf(prefix: string, name: string): Buffer {
  return createHash('sha256').update(`${prefix}\0${name}`).digest();
}
