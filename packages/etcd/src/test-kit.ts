import { createLocks, type Locks, type LocksOptions } from '@holdfast/core';
import { Etcd3 } from 'etcd3';
import type { EtcdBackend } from './backend.js';
import { etcdBackend } from './module.js';
import type { EtcdBackendOptions } from './options.js';

/** On a slow machine time bounds are multiplied by this. */
export const FACTOR = Number(process.env.HOLDFAST_TIME_FACTOR ?? 1);

/** Locks, and the backend below them. */
export interface Opened extends AsyncDisposable {
  readonly locks: Locks;
  readonly backend: EtcdBackend;
}

/** Opens locks that end with their scope. */
export async function open(options: EtcdBackendOptions, locksOptions: LocksOptions = {}): Promise<Opened> {
  const backend = etcdBackend(options);
  const locks = await createLocks(backend, locksOptions);
  return { locks, backend, [Symbol.asyncDispose]: () => locks.close() };
}

/** A client to look and meddle with, besides the locks' own. */
export class Admin implements Disposable {
  readonly client: Etcd3;

  constructor(hosts: readonly string[], auth?: { username: string; password: string }) {
    this.client = new Etcd3({ hosts: [...hosts], ...(auth === undefined ? {} : { auth }) });
  }

  async leases(): Promise<readonly string[]> {
    const { leases } = await this.client.leaseClient.leaseLeases();
    return leases.map(({ ID }) => ID);
  }

  keys(prefix = ''): Promise<readonly string[]> {
    return this.client.getAll().prefix(prefix).keys();
  }

  /** Waits until the server has as few leases as that. */
  leasesAtMost(count: number, ms = 2_000 * FACTOR): Promise<void> {
    return until(async () => (await this.leases()).length <= count, ms);
  }

  revoke(id: string): Promise<unknown> {
    return this.client.leaseClient.leaseRevoke({ ID: id });
  }

  /** Forgets all history. */
  async compact(): Promise<void> {
    const { header } = await this.client.put('compaction').value(String(Math.random())).exec();
    await this.client.kv.compact({ revision: header.revision, physical: true });
  }

  [Symbol.dispose](): void {
    this.client.close();
  }
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
export async function until(
  condition: () => boolean | Promise<boolean>,
  ms = 10_000 * FACTOR,
): Promise<void> {
  const deadline = performance.now() + ms;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`not so after ${ms} ms: ${condition}`);
    await pause(10);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

let names = 0;

/** A name that no other test uses. */
export function fresh(hint = 'lock'): string {
  names++;
  return `${hint}-${process.pid}-${names}`;
}
