import type { Session } from './session.js';

/** The last hold of a lock in this process, given back: its node was the first of the queue when it was removed. */
export interface LastHold {
  readonly session: Session;
  readonly sequence: number;
  /** The transaction that removed its node. */
  readonly removedBy: bigint;
}

/** A node that was just made. */
export interface NewNode {
  readonly sequence: number;
  readonly czxid: bigint;
}

/**
 * Whether a new node must be the only one in its queue, so that nobody need list it: nodes are numbered in the order in
 * which they are made, none of a lower number is left after the last hold's, and this one has the very next number.
 *
 * Unless the lock's own node was removed meanwhile and made anew, where the numbers start again at 0. That takes a
 * transaction each for removing and making it and for every lower number, all of them between the two that we know: so it
 * has not happened where there is no room for as many.
 */
export function isAlone(session: Session, { sequence, czxid }: NewNode, last: LastHold): boolean {
  if (last.session !== session || sequence <= 0 || sequence !== last.sequence + 1) return false;
  const between = czxid - last.removedBy - 1n;
  return between >= 0n && between < BigInt(sequence) + 2n;
}
