import { InvalidArgumentError } from './errors.js';

const LONGEST_NAME = 512;
const LONGEST_METADATA = 1024;
const PREFIX = /^[A-Za-z0-9._-]{1,64}$/;
const encoder = new TextEncoder();

/**
 * Checks a lock's name: 1 to 512 bytes of well-formed UTF-8, without U+0000.
 *
 * @throws InvalidArgumentError
 */
export function checkName(name: unknown): asserts name is string {
  if (typeof name !== 'string' || name.length === 0 || !isText(name, LONGEST_NAME)) {
    throw new InvalidArgumentError('name', name, '1 to 512 bytes of well-formed UTF-8 without U+0000');
  }
}

/**
 * Checks a holder's metadata: at most 1 KiB of well-formed UTF-8, without U+0000.
 *
 * @throws InvalidArgumentError
 */
export function checkMetadata(metadata: unknown): asserts metadata is string {
  if (typeof metadata !== 'string' || !isText(metadata, LONGEST_METADATA)) {
    throw new InvalidArgumentError(
      'metadata',
      metadata,
      'at most 1024 bytes of well-formed UTF-8 without U+0000',
    );
  }
}

/**
 * Checks a prefix, which isolates tenants of one server.
 *
 * @throws InvalidArgumentError
 */
export function checkPrefix(prefix: unknown): asserts prefix is string {
  if (typeof prefix !== 'string' || !PREFIX.test(prefix)) {
    throw new InvalidArgumentError('prefix', prefix, '1 to 64 of A-Z a-z 0-9 . _ -');
  }
}

function isText(text: string, longest: number): boolean {
  if (!text.isWellFormed() || text.includes('\u0000')) return false;
  // One UTF-16 unit is at most three bytes of UTF-8: most names need no encoding to be measured.
  return text.length * 3 <= longest || encoder.encode(text).length <= longest;
}
