import { createLocks, type Locks, type LocksOptions } from '@holdfast/core';
import { Redis } from 'ioredis';
import { redisBackend } from './module.js';
import type { RedisBackendOptions } from './options.js';

/** Opens locks; the caller closes them (`await using`). */
export function open(backend: RedisBackendOptions, options: LocksOptions = {}): Promise<Locks> {
  return createLocks(redisBackend(backend), options);
}

/** A client to look and meddle with, besides the locks' own; it ends with its scope. */
export function admin(url: string): Redis & Disposable {
  const client = new Redis(url, { maxRetriesPerRequest: null });
  // Tests stop the server under it.
  client.on('error', () => undefined);
  return Object.assign(client, { [Symbol.dispose]: () => client.disconnect() });
}

/** How a call ended and how long it took. */
export async function timed<T>(call: Promise<T>): Promise<{ value?: T; error?: unknown; ms: number }> {
  const started = performance.now();
  const outcome = await call.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  return { ...outcome, ms: performance.now() - started };
}

/** Resolves when `condition` holds: an event that nobody announces. */
export async function until(condition: () => boolean | Promise<boolean>, ms = 15_000): Promise<void> {
  const deadline = performance.now() + ms;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`not so after ${ms} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
