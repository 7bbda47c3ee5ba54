import { setTimeout as sleep } from 'node:timers/promises';

/** What keeps this process busy, by kind: timers, sockets, and listeners on the process itself. */
export function countResources(): Record<string, number> {
  const counts: Record<string, number> = {};
  // Opened by whoever looks at them first: from here on they are there.
  if (process.stdout.destroyed || process.stderr.destroyed) throw new Error('there is nowhere to print to');
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1;
  const listeners = process.eventNames().map((event) => process.listenerCount(event));
  counts['process listeners'] = listeners.reduce((sum, count) => sum + count, 0);
  return counts;
}

/**
 * As {@link countResources}, once nothing is above its level before, or after `within` milliseconds: clients let go
 * of some things only when the event loop has come round, or a short timer has run out.
 */
export async function countSettled(
  before: Readonly<Record<string, number>>,
  within: number,
): Promise<Record<string, number>> {
  const deadline = performance.now() + within;
  for (;;) {
    // Counted before the pause, whose timer would count itself.
    const counts = countResources();
    const isBack = Object.entries(counts).every(([kind, count]) => count <= (before[kind] ?? 0));
    if (isBack || performance.now() > deadline) return counts;
    await sleep(50);
  }
}
