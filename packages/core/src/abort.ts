/**
 * One abort listener for each caller's signal, however many waiters share it: Node warns at eleven, and a thousand
 * waiters on a server's shutdown signal are ordinary.
 */
const followers = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls `onAbort` once when `signal` aborts, unless the returned function was called before. */
export function followAbort(signal: AbortSignal, onAbort: () => void): () => void {
  const present = followers.get(signal);
  const set = present ?? new Set();
  set.add(onAbort);
  if (present === undefined) {
    followers.set(signal, set);
    const fire = (): void => {
      followers.delete(signal);
      for (const follower of set) follower();
    };
    signal.addEventListener('abort', fire, { once: true });
    listeners.set(set, fire);
  }
  return () => {
    set.delete(onAbort);
    if (set.size > 0 || followers.get(signal) !== set) return;
    followers.delete(signal);
    const fire = listeners.get(set);
    if (fire !== undefined) signal.removeEventListener('abort', fire);
  };
}

const listeners = new WeakMap<Set<() => void>, () => void>();
