import { setTimeout as sleep } from 'node:timers/promises';
import { type Profile, profile } from './profile.js';
import type { SubjectClient } from './subject.js';

/** ms: how long those who still wait at the end may go on. */
const LAST_TURNS = 20_000;

/** What a worker process is told to do. */
export type Task =
  | { readonly kind: 'sequential'; readonly ms: number }
  | { readonly kind: 'parallel'; readonly loops: number; readonly ms: number }
  | { readonly kind: 'contended'; readonly waiters: number; readonly ms: number; readonly name: string }
  | { readonly kind: 'probe'; readonly ms: number }
  | { readonly kind: 'profile'; readonly ms: number }
  | { readonly kind: 'hold'; readonly locks: number; readonly ms: number }
  | { readonly kind: 'take'; readonly name: string; readonly ttl: number };

/**
 * When a grant came and was given back, in ms on the machine's monotonic clock: comparable between processes. And to which
 * waiter of its process it went.
 */
export type ContendedHold = readonly [granted: number, released: number, waiter: number];

/** What a worker process found. */
export type Finding =
  | { readonly kind: 'rate'; readonly perSecond: number; readonly cpuPerOperation: number }
  | {
      readonly kind: 'contended';
      readonly holds: readonly ContendedHold[];
      readonly grantsOfWaiter: readonly number[];
      /** Acquisitions and releases that ended in an error, which a caller would have to understand. */
      readonly errors: number;
    }
  | { readonly kind: 'latencies'; readonly ms: readonly number[] }
  | { readonly kind: 'profile'; readonly profile: Profile }
  | { readonly kind: 'hold'; readonly cores: number; readonly rss: number; readonly acquireMs: number }
  /** When the lock was granted, in ms on the machine's monotonic clock. It stays held until the process ends. */
  | { readonly kind: 'taken'; readonly at: number };

/** Runs a task on an open client. */
export async function perform(client: SubjectClient, task: Task): Promise<Finding> {
  switch (task.kind) {
    case 'sequential':
      return rate(1, task.ms, (loop) => pair(client, `sequential-${process.pid}-${loop}`));
    case 'parallel':
      return rate(task.loops, task.ms, (loop) => pair(client, `parallel-${process.pid}-${loop}`));
    case 'contended':
      return contended(client, task);
    case 'probe':
      return probe(client, task.ms);
    case 'profile':
      return { kind: 'profile', profile: await profile(() => pairs(client, task.ms)) };
    case 'hold':
      return hold(client, task);
    case 'take':
      await client.acquire(task.name, task.ttl);
      return { kind: 'taken', at: now() };
  }
}

async function pair(client: SubjectClient, name: string): Promise<void> {
  const release = await client.acquire(name);
  await release();
}

/** As many as there is time for, one after another. */
async function pairs(client: SubjectClient, ms: number): Promise<number> {
  const end = now() + ms;
  let count = 0;
  for (; now() < end; count++) await pair(client, `profiled-${process.pid}`);
  return count;
}

async function rate(loops: number, ms: number, operation: (loop: number) => Promise<void>): Promise<Finding> {
  const start = now();
  const end = start + ms;
  const cpu = process.cpuUsage();
  let count = 0;
  const loop = async (index: number): Promise<void> => {
    while (now() < end) {
      await operation(index);
      count++;
    }
  };
  await Promise.all(Array.from({ length: loops }, (_, index) => loop(index)));
  const { user, system } = process.cpuUsage(cpu);
  return {
    kind: 'rate',
    perSecond: (count / (now() - start)) * 1000,
    cpuPerOperation: (user + system) / 1000 / count,
  };
}

async function contended(
  client: SubjectClient,
  task: Extract<Task, { kind: 'contended' }>,
): Promise<Finding> {
  const end = now() + task.ms;
  const holds: ContendedHold[] = [];
  const grantsOfWaiter = Array.from({ length: task.waiters }, () => 0);
  let errors = 0;
  const turn = async (waiter: number): Promise<void> => {
    const release = await client.acquire(task.name);
    const granted = now();
    grantsOfWaiter[waiter] = (grantsOfWaiter[waiter] ?? 0) + 1;
    const releasing = release();
    holds.push([granted, now(), waiter]);
    await releasing;
  };
  const loop = async (waiter: number): Promise<void> => {
    while (now() < end) {
      try {
        await turn(waiter);
      } catch {
        errors++;
        await sleep(1);
      }
    }
  };
  const everybody = Promise.all(grantsOfWaiter.map((_, waiter) => loop(waiter)));
  // Each waiter takes one last turn, so that what it asked for is counted whole; where turns are slow, not all come to it.
  const enough = new AbortController();
  await Promise.race([everybody, sleep(task.ms + LAST_TURNS, undefined, { signal: enough.signal })]);
  enough.abort();
  return { kind: 'contended', holds: [...holds], grantsOfWaiter: [...grantsOfWaiter], errors };
}

async function probe(client: SubjectClient, ms: number): Promise<Finding> {
  const end = now() + ms;
  const latencies: number[] = [];
  while (now() < end) {
    const start = now();
    await client.probe?.();
    latencies.push(now() - start);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return { kind: 'latencies', ms: latencies };
}

async function hold(client: SubjectClient, task: Extract<Task, { kind: 'hold' }>): Promise<Finding> {
  const start = now();
  const releases: (() => Promise<unknown>)[] = [];
  for (let from = 0; from < task.locks; from += 500) {
    const batch = Array.from({ length: Math.min(500, task.locks - from) }, (_, index) =>
      client.acquire(`held-${process.pid}-${from + index}`),
    );
    releases.push(...(await Promise.all(batch)));
  }
  const acquireMs = now() - start;
  const cpu = process.cpuUsage();
  const measured = now();
  await new Promise((resolve) => setTimeout(resolve, task.ms));
  const { user, system } = process.cpuUsage(cpu);
  const cores = (user + system) / 1000 / (now() - measured);
  const rss = process.memoryUsage.rss();
  for (let from = 0; from < task.locks; from += 500) {
    await Promise.all(releases.slice(from, from + 500).map((release) => release()));
  }
  return { kind: 'hold', cores, rss, acquireMs };
}

/** Monotonic and shared by all processes of the machine. */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
