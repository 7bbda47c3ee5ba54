import type { Locks } from '@holdfast/core';

/** What the backend itself says is held or waited for. */
export async function countLocks(locks: Locks): Promise<{ held: number; waiters: number }> {
  const counts = { held: 0, waiters: 0 };
  for await (const state of locks.list()) {
    if (state.held) counts.held += 1;
    counts.waiters += state.waiters.length;
  }
  return counts;
}
