import { createHash } from 'node:crypto';

/**
 * The key of a name's row: a digest, so that no collation, padding, length or truncation of the database can make
 * two names meet or one name split. The prefix cannot contain U+0000, so that no two pairs give one input.
 */
export function keyOf(prefix: string, name: string): Buffer {
  return createHash('sha256').update(`${prefix}\0${name}`).digest();
}
