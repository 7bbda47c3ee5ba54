import { type DiagnosticsChannel, diagnosticsChannel } from '#platform';
import { InvalidArgumentError } from './errors.js';
import type { LockEvents } from './locks.js';

type Listener<E extends keyof LockEvents> = (event: LockEvents[E]) => void;
type Details<E extends keyof LockEvents> = Omit<LockEvents[E], 'at'>;

const NAMES = ['waiting', 'acquired', 'renewed', 'lost', 'released', 'error'] as const;

/** The `holdfast:*` channels, shared by every `Locks` of the process. */
const channels = Object.fromEntries(
  NAMES.map((name) => [name, diagnosticsChannel(`holdfast:${name}`)]),
) as Record<keyof LockEvents, DiagnosticsChannel>;

/** Tells listeners and diagnostics channels what happened; costs nothing while nobody listens. */
export class Events {
  readonly #listeners: { [E in keyof LockEvents]?: Set<Listener<E>> } = {};

  /** Listens until the returned function is called. The same function given twice is called twice. */
  on<E extends keyof LockEvents>(event: E, listener: Listener<E>): () => void {
    if (!NAMES.includes(event)) throw new InvalidArgumentError('event', event, NAMES.join(', '));
    if (typeof listener !== 'function') throw new InvalidArgumentError('listener', listener, 'a function');
    const listeners = this.#of(event);
    const own: Listener<E> = (payload) => listener(payload);
    listeners.add(own);
    return () => void listeners.delete(own);
  }

  /** Whether a payload for that event would reach anybody: lets the caller avoid building it. */
  wanted(event: keyof LockEvents): boolean {
    return (this.#listeners[event]?.size ?? 0) > 0 || channels[event].hasSubscribers;
  }

  emit<E extends keyof LockEvents>(event: E, at: Date, details: Details<E>): void {
    if (!this.wanted(event)) return;
    const payload = { at, ...details } as LockEvents[E];
    for (const listener of [...this.#of(event)]) {
      // A listener's fault is the listener's: it must not turn into a lost lock or a crashed process.
      try {
        Promise.resolve(listener(payload)).catch(() => undefined);
      } catch {
        // As above.
      }
    }
    channels[event].publish(payload);
  }

  #of<E extends keyof LockEvents>(event: E): Set<Listener<E>> {
    const present = this.#listeners[event] as Set<Listener<E>> | undefined;
    if (present !== undefined) return present;
    const made = new Set<Listener<E>>();
    (this.#listeners as Record<E, Set<Listener<E>>>)[event] = made;
    return made;
  }
}
