import { createLocks, type LocksOptions } from '../locks.js';
import { memoryBackend } from '../memory/backend.js';
import { MemoryStore } from '../memory/store.js';
import { FlakyBackend } from './flaky-backend.js';
import { ManualClock } from './manual-clock.js';

/** Two clients of one store on one clock that moves only when told; the requests of the first can meet faults. */
export async function world(options: LocksOptions = {}) {
  const clock = new ManualClock();
  const store = new MemoryStore(clock);
  const flaky = new FlakyBackend(memoryBackend({ store }));
  const a = await createLocks(flaky.backend, { clock, ...options });
  const b = await createLocks(memoryBackend({ store }), { clock });
  return { clock, store, flaky, a, b };
}

/** The outcome of a promise that settles while the clock is moved. */
export function outcome<T>(promise: Promise<T>): Promise<T | { code: string }> {
  return promise.catch((error: { code: string }) => error);
}
