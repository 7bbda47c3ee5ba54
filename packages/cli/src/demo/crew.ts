import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@holdfast/core';
import type { ConnectionFlags } from '../connection.js';
import { CONNECTION, connectionText, type Report, type Task } from './protocol.js';

/** One hold of the lock, as a worker told it. */
export interface HoldRecord {
  readonly worker: number;
  readonly token: bigint;
  readonly from: number;
  /** Absent: the worker was killed while it held. */
  to?: number;
  /** When it was killed. */
  killedAt?: number;
}

/** The worker processes of the demo. */
export class Crew {
  readonly #workers: readonly Worker[];

  private constructor(workers: readonly Worker[]) {
    this.#workers = workers;
  }

  /** Starts the workers; resolves when all of them are connected. */
  static async start(size: number, flags: ConnectionFlags): Promise<Crew> {
    const crew = new Crew(Array.from({ length: size }, (_, index) => new Worker(index + 1, flags)));
    try {
      await Promise.all(crew.#workers.map((worker) => worker.ready));
      return crew;
    } catch (error) {
      await crew.dismiss();
      throw error;
    }
  }

  /**
   * Lets all count at once. With `victim`, that worker stops in its third turn, while it holds the lock, and is killed.
   *
   * @returns the holds in the order of their grants
   */
  async count(task: Task, victim?: number): Promise<readonly HoldRecord[]> {
    const records: HoldRecord[] = [];
    await Promise.all(
      this.#workers.map((worker) =>
        worker.number === victim
          ? worker.count({ ...task, stopIn: 3 }, records)
          : worker.count(task, records),
      ),
    );
    return records.sort((a, b) => a.from - b.from);
  }

  async dismiss(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.dismiss()));
  }
}

class Worker {
  readonly number: number;
  readonly ready: Promise<void>;
  readonly #child: ChildProcess;
  readonly #gone: Promise<void>;
  #hear: (report: Report) => void = () => undefined;
  #fail: (error: Error) => void = () => undefined;

  constructor(number: number, flags: ConnectionFlags) {
    this.number = number;
    this.#child = fork(fileURLToPath(new URL('./worker.js', import.meta.url)), {
      env: { ...process.env, [CONNECTION]: connectionText(flags), NODE_NO_WARNINGS: '1' },
    });
    this.#gone = new Promise((resolve) => {
      this.#child.once('exit', () => {
        this.#fail(new Error(`worker ${number} ended before its work`));
        resolve();
      });
      this.#child.once('error', (error) => {
        this.#fail(error);
        resolve();
      });
    });
    this.#child.on('message', (report) => this.#hear(report as Report));
    this.ready = this.#until((report) => report.kind === 'ready');
  }

  /** Counts, and adds its holds to the records; resolves when it is done, or was killed as planned. */
  async count(task: Task, records: HoldRecord[]): Promise<void> {
    let current: HoldRecord | undefined;
    const done = this.#until((report) => {
      switch (report.kind) {
        case 'granted':
          current = { worker: this.number, token: BigInt(report.token), from: report.at };
          records.push(current);
          return false;
        case 'counted':
          if (current !== undefined) current.to = report.at;
          return false;
        case 'stopped':
          this.#child.kill('SIGKILL');
          if (current !== undefined) current.killedAt = systemClock.wall();
          return true;
        default:
          return report.kind === 'done';
      }
    });
    this.#child.send(task);
    await done;
  }

  async dismiss(): Promise<void> {
    if (this.#child.connected) this.#child.disconnect();
    await this.#gone;
  }

  /** Resolves when `isLast` says so of a report. */
  #until(isLast: (report: Report) => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#fail = reject;
      this.#hear = (report) => {
        if (report.kind === 'failed') reject(new Error(report.message));
        else if (isLast(report)) resolve();
      };
    });
  }
}
