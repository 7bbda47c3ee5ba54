/**
 * The figures of the memory backend that need no server: `node packages/bench/dist/memory-figures.js`. Uncontended
 * pairs a second; crowds of waiters on one name, the order in which they are served, and the heap before and after.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createLocks, type Locks, memoryBackend } from '@holdfast/core';
import { median } from './stats.js';

const ROUNDS = 5;
const PAIRS = 100_000;
const CROWDS = [10_000, 50_000];

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const locks = await createLocks(memoryBackend());
await pairs(locks, PAIRS);
const rates: number[] = [];
for (let round = 0; round < ROUNDS; round++) rates.push(await pairs(locks, PAIRS));
console.log(
  `uncontended acquire + release: ${thousands(median(rates))} pairs/s (median of ${ROUNDS} × ${PAIRS})`,
);

// What the first crowd leaves warm (code, hidden classes) is no leak: it is let through unmeasured.
await crowd(locks, CROWDS[0] ?? 0);
for (const size of CROWDS) {
  const before = await settledHeap();
  const { peak, inversions, ms } = await crowd(locks, size);
  const after = await settledHeap();
  console.log(
    `${thousands(size)} waiters on one name: ${thousands((size / ms) * 1000)} grants/s, ${inversions} out of order; ` +
      `heap ${mib(before)} before, ${mib(peak)} with all waiting, ${mib(after)} after`,
  );
}
await locks.close();

async function pairs(on: Locks, count: number): Promise<number> {
  const lock = on.lock('uncontended', { ttl: '30s' });
  const start = performance.now();
  for (let pair = 0; pair < count; pair++) await (await lock.acquire()).release();
  return (count / (performance.now() - start)) * 1000;
}

interface Crowd {
  readonly peak: number;
  /** Waiters that were served before one that had come before them. */
  readonly inversions: number;
  readonly ms: number;
}

async function crowd(on: Locks, size: number): Promise<Crowd> {
  const lock = on.lock('contended', { ttl: '5m' });
  const first = await lock.acquire();
  let last = -1;
  let inversions = 0;
  const served = Array.from({ length: size }, async (_, number) => {
    const hold = await lock.acquire();
    if (number < last) inversions++;
    last = Math.max(last, number);
    await hold.release();
  });
  const peak = await settledHeap();
  const start = performance.now();
  await first.release();
  await Promise.all(served);
  return { peak, inversions, ms: performance.now() - start };
}

async function settledHeap(): Promise<number> {
  for (let turn = 0; turn < 3; turn++) {
    await sleep(20);
    collectGarbage();
  }
  return process.memoryUsage().heapUsed;
}

function mib(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

function thousands(value: number): string {
  return Math.round(value).toLocaleString('en');
}
