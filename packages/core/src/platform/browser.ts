/** The browser's stand-in for `node.ts`. Re-entry needs a call chain, which browsers do not track: see `createChainStorage`. */
import type { ChainStorage, DiagnosticsChannel } from './node.js';

export type { ChainStorage, DiagnosticsChannel } from './node.js';

/** Without asynchronous context nobody is ever inside a chain, so a re-entrant acquisition waits its turn. */
export function createChainStorage<T>(): ChainStorage<T> {
  return { run: (_value, work) => work(), getStore: () => undefined };
}

/** A channel that nobody can listen to. */
export function diagnosticsChannel(_name: string): DiagnosticsChannel {
  return { hasSubscribers: false, publish: () => undefined };
}

/** Browsers have no listener limit. */
export function unlimitListeners(_signal: AbortSignal): void {}

/** Browsers offer no clock that counts suspension apart from the monotonic one. */
export function uptime(): number {
  return performance.now();
}

/** Warns on the console. */
export function warn(message: string): void {
  console.warn(message);
}

/** Who we are, for people who debug. */
export function processIdentity(): string {
  return 'browser:0';
}
