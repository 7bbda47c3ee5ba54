import { closeSync, openSync, writeSync } from 'node:fs';
import type { EventBody, HistoryEvent, Validity } from './event.js';

/** Milliseconds on the machine's monotonic clock, in steps of a microsecond: comparable across processes of one host. */
export function monotonicNow(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000;
}

/** What is known of a handle: `LockHandle` fits. */
export interface Remaining {
  remaining(): number;
}

/** Looks at a handle; cautious, so that no time between the readings is claimed that the handle did not claim. */
export function observe(handle: Remaining): Validity {
  const before = monotonicNow();
  const until = before + handle.remaining();
  return { from: monotonicNow(), until };
}

/** Appends one process's events to its file. */
export class Recorder {
  readonly process: string;
  #file: number | undefined;
  #nextOp = 1;

  constructor(path: string, processName: string) {
    this.process = processName;
    this.#file = openSync(path, 'a');
  }

  /** A fresh number for an operation of this process. */
  nextOp(): number {
    return this.#nextOp++;
  }

  /**
   * Writes one event, with the time of this call. Written synchronously: what was recorded survives `kill -9`.
   * After `close` it does nothing, since late signals of a lock may still come in.
   */
  append(body: EventBody): void {
    if (this.#file === undefined) return;
    const event: HistoryEvent = { at: monotonicNow(), process: this.process, ...body };
    writeSync(this.#file, `${JSON.stringify(event)}\n`);
  }

  close(): void {
    if (this.#file === undefined) return;
    closeSync(this.#file);
    this.#file = undefined;
  }
}
