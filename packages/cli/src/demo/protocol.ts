import type { ConnectionFlags } from '../connection.js';

/** What the demo tells a worker: to count to a file, so many times. */
export interface Task {
  readonly file: string;
  readonly times: number;
  /** All begin at this moment, so that they meet. */
  readonly startAt: number;
  /** The lock to count under; without one it counts as it likes. */
  readonly lock?: { readonly name: string; readonly ttl: number };
  /** In this turn (from 1) it stops while it holds the lock, and waits to be killed. */
  readonly stopIn?: number;
}

/** What a worker tells the demo. Times are ms since the epoch on the machine's wall clock. */
export type Report =
  | { readonly kind: 'ready' }
  | { readonly kind: 'granted'; readonly at: number; readonly token: string }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'counted'; readonly at: number }
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly message: string };

/** The environment variable by which a worker gets its connection: arguments would show a password to everybody. */
export const CONNECTION = 'HOLDFAST_DEMO_CONNECTION';

/** The connection in the form that {@link CONNECTION} has. */
export function connectionText(flags: ConnectionFlags): string {
  return JSON.stringify({ url: flags.url, config: flags.config });
}
