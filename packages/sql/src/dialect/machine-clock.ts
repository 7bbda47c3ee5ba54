import { readFileSync, readlinkSync } from 'node:fs';
import type { Clock } from '@holdfast/core';

/** One reading of the clocks by which a file's locks expire. Whole microseconds. */
export interface MachineTime {
  /** Names the clock that `now` was read from: values of different clocks do not compare. */
  readonly clockId: string;
  readonly now: number;
  readonly wall: number;
}

/** The machine's time since boot ticks in hundredths of a second on Linux. */
export const TICK = 10_000;

/**
 * The clock that every process of one machine shares: time since boot where the machine names its boots, so that a
 * stepped wall clock steals no lock and keeps none; the wall clock elsewhere.
 */
export class MachineClock {
  readonly #clock: Clock;
  readonly #bootId: string | undefined;

  constructor(clock: Clock, bootId: string | undefined = readBootId()) {
    this.#clock = clock;
    this.#bootId = bootId;
  }

  read(): MachineTime {
    const wall = Math.floor(this.#clock.wall() * 1000);
    if (this.#bootId === undefined) return { clockId: 'wall', now: wall, wall };
    return { clockId: this.#bootId, now: Math.floor(this.#clock.uptime() * 1000), wall };
  }
}

/**
 * The present boot, or undefined where its clock is not one for the whole machine: outside Linux, and where a
 * container is given an uptime of its own (lxcfs mounts over /proc/uptime; a time namespace shifts the clock, so
 * it is part of the identity).
 */
export function readBootId(): string | undefined {
  try {
    if (/ \/proc\/uptime /.test(readFileSync('/proc/self/mountinfo', 'utf8'))) return undefined;
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot}/${readlinkSync('/proc/self/ns/time')}`;
  } catch {
    return undefined;
  }
}
