import { createInterface } from 'node:readline/promises';
import type { Locks } from '@holdfast/core';
import { EXIT, UsageError } from '../exit.js';
import { json, type Output } from '../output.js';
import { printable, quoted } from '../text.js';

/** The options of `release`. */
export interface ReleaseFlags {
  readonly force?: boolean;
  readonly token?: string;
  readonly json?: boolean;
}

/** Refuses what would break a lock by accident; nothing has been sent yet. */
export function checkRelease({ force, token }: ReleaseFlags): bigint | undefined {
  if (force !== true) {
    throw new UsageError(
      'a lock is released by its holder; to break it although somebody may hold it, give --force',
    );
  }
  if (token === undefined) return undefined;
  if (!/^\d{1,19}$/.test(token))
    throw new UsageError('--token: a fencing token is a whole number, as `show` prints it');
  return BigInt(token);
}

/**
 * Breaks a lock: the grant with that token, or the one that was shown, once the name has been typed again.
 *
 * @returns the exit code: 1 when nothing was there to break
 */
export async function release(
  locks: Locks,
  name: string,
  flags: ReleaseFlags,
  output: Output,
): Promise<number> {
  const token = checkRelease(flags) ?? (await confirm(locks, name, output));
  const released = await locks.forceRelease(name, token === undefined ? undefined : { fencingToken: token });
  if (flags.json === true) output.out(json({ name, released }));
  else if (released) output.out(`released ${quoted(name)}; its holder learns of it at its next renewal`);
  else
    output.err(
      `nothing was released: ${quoted(name)} is not held${token === undefined ? '' : ` with token ${token}`}`,
    );
  return released ? EXIT.ok : EXIT.negative;
}

/**
 * Waits for the name, typed again, on the terminal or on the input.
 *
 * @returns the token of the grant that was shown: who got the lock while somebody typed keeps it
 */
async function confirm(locks: Locks, name: string, output: Output): Promise<bigint | undefined> {
  const { held, owner, fencingToken } = await locks.inspect(name);
  if (!held) return undefined;
  const who = owner === undefined ? 'kept by its minHold' : `held by ${printable(owner)}`;
  output.err(
    `${quoted(name)} is ${who}${fencingToken === undefined ? '' : `, token ${fencingToken}`}. Breaking it lets somebody else in while that holder may still work.`,
  );
  output.err('Type the name again to break it (or give --token):');
  const input = createInterface({ input: process.stdin, terminal: false });
  try {
    for await (const line of input) {
      if (line === name) return fencingToken;
      break;
    }
  } finally {
    input.close();
  }
  throw new UsageError('not confirmed: nothing was released; give --token, or type the name');
}
