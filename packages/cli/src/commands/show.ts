import type { LockState, Locks } from '@holdfast/core';
import { json, type Output } from '../output.js';
import { printable, quoted, span } from '../text.js';

/** Prints who holds one lock, since when, for how long still, and who waits. */
export async function show(
  locks: Locks,
  name: string,
  flags: { readonly json?: boolean },
  output: Output,
): Promise<void> {
  const state = await locks.inspect(name);
  output.out(flags.json === true ? json(state) : describe(state));
}

function describe(state: LockState): string {
  const { owner, fencingToken, acquiredAt, expiresIn, metadata } = state;
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['lock', quoted(state.name)],
    [
      'state',
      owner === undefined && state.held ? 'held until its minHold ends' : state.held ? 'held' : 'free',
    ],
    ['holder', owner === undefined ? undefined : printable(owner)],
    ['since', acquiredAt?.toISOString()],
    ['expires in', expiresIn === undefined ? undefined : `${span(expiresIn)}, unless renewed`],
    ['token', fencingToken === undefined ? undefined : String(fencingToken)],
    ['metadata', metadata === undefined ? undefined : printable(metadata)],
    ['waiting', String(state.waiters.length)],
  ];
  const lines = facts.flatMap(([label, value]) => (value === undefined ? [] : `${label.padEnd(12)}${value}`));
  const waiters = state.waiters.map(
    ({ position, owner: waiter }) => `${`  ${position}`.padEnd(12)}${printable(waiter)}`,
  );
  return [...lines, ...waiters].join('\n');
}
