/** What keeps this process busy, by kind: timers, sockets, and listeners on the process itself. */
export function countResources(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1;
  const listeners = process.eventNames().map((event) => process.listenerCount(event));
  counts['process listeners'] = listeners.reduce((sum, count) => sum + count, 0);
  return counts;
}
