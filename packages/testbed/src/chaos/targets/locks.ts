import { type BackendSection, connect, type KnownBackend, type Locks } from '@holdfast/core';

/** For the runner's own looks at a backend: patient with servers on a busy machine. */
export function openLocks(backend: KnownBackend, url: string): Promise<Locks> {
  const section: { readonly [B in KnownBackend]?: BackendSection } = { [backend]: { url } };
  return connect({ ...section, backend, commandTimeout: '60s' });
}

/** What the backend itself says is held or waited for. */
export async function countLocks(
  backend: KnownBackend,
  url: string,
): Promise<{ held: number; waiters: number }> {
  await using locks = await openLocks(backend, url);
  const counts = { held: 0, waiters: 0 };
  for await (const state of locks.list()) {
    if (state.held) counts.held += 1;
    counts.waiters += state.waiters.length;
  }
  return counts;
}
