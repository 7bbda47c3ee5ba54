import { type LockState, type Locks, systemClock } from '@holdfast/core';
import { json, type Output } from '../output.js';
import { quoted, span, table } from '../text.js';

/** What `list` and `watch` share: one lock in one row. */
export const HEADINGS = ['NAME', 'HELD BY', 'FOR', 'EXPIRES IN', 'WAITING', 'TOKEN'] as const;

/** A lock's row under {@link HEADINGS}. */
export function row(state: LockState, now: number): readonly string[] {
  const { name, held, owner, acquiredAt, expiresIn, waiters, fencingToken } = state;
  const holder = owner === undefined ? (held ? '(kept by minHold)' : '(nobody)') : quoted(owner);
  return [
    quoted(name),
    holder,
    acquiredAt === undefined ? '-' : span(Math.max(0, now - acquiredAt.getTime())),
    expiresIn === undefined ? '-' : span(expiresIn),
    String(waiters.length),
    fencingToken === undefined ? '-' : String(fencingToken),
  ];
}

/** The locks that are held or waited for, by name. */
export async function collect(locks: Locks, prefix: string | undefined): Promise<readonly LockState[]> {
  const states: LockState[] = [];
  for await (const state of locks.list(prefix === undefined ? {} : { prefix })) states.push(state);
  return states.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Prints the locks that are held or waited for: a table, or one JSON object a line as they are met. */
export async function list(
  locks: Locks,
  flags: { readonly prefix?: string; readonly json?: boolean },
  output: Output,
): Promise<void> {
  if (flags.json === true) {
    const filter = flags.prefix === undefined ? {} : { prefix: flags.prefix };
    for await (const state of locks.list(filter)) output.out(json(state));
    return;
  }
  const states = await collect(locks, flags.prefix);
  if (states.length === 0) output.err('no locks are held or waited for');
  else
    output.out(
      table(
        HEADINGS,
        states.map((state) => row(state, systemClock.wall())),
      ),
    );
}
