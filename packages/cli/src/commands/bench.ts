import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { type Locks, systemClock } from '@holdfast/core';
import { UsageError } from '../exit.js';
import { json, type Output } from '../output.js';
import { printable } from '../text.js';
import { histogramSvg, histogramText } from './histogram.js';

/** The options of `bench`. */
export interface BenchFlags {
  /** ms for each measurement. */
  readonly duration: number;
  readonly parallel: number;
  readonly svg?: string;
  readonly json?: boolean;
}

/** One measurement: what was done, and how long each time took, in ms. */
export interface Series {
  readonly title: string;
  readonly perSecond: number;
  readonly times: readonly number[];
}

/** Measures the chosen backend from this process, and draws how long things took. */
export async function bench(locks: Locks, flags: BenchFlags, output: Output): Promise<void> {
  const run = `bench:${randomBytes(4).toString('hex')}`;
  const { duration, parallel } = flags;
  const all: Series[] = [];
  const add = (series: Series): void => {
    all.push(series);
    if (flags.json !== true) output.out(`${histogramText(series)}\n`);
  };

  await cycle(locks, `${run}:warm`);
  add(await measure('take and give back, one after another', duration, 1, () => cycle(locks, `${run}:one`)));
  add(
    await measure(`take and give back, ${parallel} at once, a name each`, duration, parallel, (worker) =>
      cycle(locks, `${run}:${worker}`),
    ),
  );
  add(
    await measure(`hand-over, ${parallel} waiting for one name`, duration, parallel, () =>
      cycle(locks, `${run}:all`),
    ),
  );

  if (flags.json === true) {
    const series = all.map(({ title, perSecond, times }) => ({ title, perSecond, ...percentiles(times) }));
    output.out(json({ backend: locks.backend.name, series }));
  }
  if (flags.svg !== undefined) {
    try {
      await writeFile(flags.svg, histogramSvg(all, locks.backend.name));
    } catch (error) {
      throw new UsageError(`--svg: ${(error as Error).message}`);
    }
    output.err(`wrote ${printable(flags.svg)}`);
  }
}

async function cycle(locks: Locks, name: string): Promise<void> {
  const hold = await locks.lock(name).acquire();
  await hold.release();
}

/** Lets `workers` repeat the work for a while. */
async function measure(
  title: string,
  duration: number,
  workers: number,
  work: (worker: number) => Promise<void>,
): Promise<Series> {
  const times: number[] = [];
  const started = systemClock.now();
  const repeat = async (worker: number): Promise<void> => {
    for (let now = systemClock.now(); now - started < duration; ) {
      await work(worker);
      const after = systemClock.now();
      times.push(after - now);
      now = after;
    }
  };
  await Promise.all(Array.from({ length: workers }, (_, worker) => repeat(worker)));
  const seconds = (systemClock.now() - started) / 1000;
  return { title, perSecond: times.length / seconds, times: times.sort((a, b) => a - b) };
}

/** The usual points of sorted times. */
export function percentiles(times: readonly number[]): {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
} {
  const at = (share: number): number =>
    times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}
