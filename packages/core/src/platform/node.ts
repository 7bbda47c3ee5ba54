/**
 * What only Node has. The engine and the memory backend reach it through `#platform` alone, so that they
 * also run in a browser, where `browser.ts` takes this module's place.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { channel } from 'node:diagnostics_channel';
import { setMaxListeners } from 'node:events';
import { hostname, uptime as systemUptime } from 'node:os';

/** Values that follow the asynchronous call chain. */
export interface ChainStorage<T> {
  run<R>(value: T, work: () => R): R;
  getStore(): T | undefined;
}

/** A diagnostics channel: costs nothing while nobody listens. */
export interface DiagnosticsChannel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}

/** Storage that follows the asynchronous call chain. */
export function createChainStorage<T>(): ChainStorage<T> {
  return new AsyncLocalStorage<T>();
}

/** The diagnostics channel of that name. */
export function diagnosticsChannel(name: string): DiagnosticsChannel {
  return channel(name);
}

/** Lifts the limit of ten listeners on a signal that any number of pieces of work may follow. */
export function unlimitListeners(signal: AbortSignal): void {
  setMaxListeners(0, signal);
}

/** Milliseconds since the machine booted, suspension counted. */
export function uptime(): number {
  return systemUptime() * 1000;
}

/** Warns the process's operator, once for each call. */
export function warn(message: string): void {
  process.emitWarning(message, 'HoldfastWarning');
}

/** Who we are, for people who debug: host and process id. */
export function processIdentity(): string {
  return `${hostname()}:${process.pid}`;
}
