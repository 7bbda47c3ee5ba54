import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { HISTORY_EXTENSION } from '../history/read.js';
import type { Recorder } from '../history/recorder.js';
import { fakeClock, type ServerClock } from '../processes/clock.js';
import { startWorker, type Worker } from '../processes/worker.js';
import type { Random } from '../random/random.js';
import { TIME_FACTOR } from './time-factor.js';
import type { WorkerConfig } from './worker-config.js';

/** How the workers of a case are started. */
export interface CrewOptions {
  readonly folder: string;
  readonly recorder: Recorder;
  /** Where to tell of what no worker should do: end by itself, not end when asked to, print something. */
  readonly troubles: string[];
  readonly random: Random;
  readonly registers: string;
  readonly url: (worker: number) => string;
  readonly mutant?: string;
  readonly workers: number;
  readonly lanes: number;
  readonly names: readonly string[];
  readonly ttl: { readonly min: number; readonly max: number };
  /** Each gets a wall clock that can be set. */
  readonly clocks: boolean;
}

/** ms that a worker may take to end when it is asked to: its releases and its backend's close. */
const STOP_WITHIN = 60_000 * TIME_FACTOR;

/** One worker that lives. */
export interface CrewMember {
  /** Its name in the history. */
  readonly name: string;
  readonly index: number;
  readonly worker: Worker;
  readonly clock: ServerClock | undefined;
}

/** The workers of a case. */
export class Crew implements AsyncDisposable {
  readonly #options: CrewOptions;
  readonly #members = new Map<number, CrewMember>();
  readonly #lives = new Map<number, number>();

  private constructor(options: CrewOptions) {
    this.#options = options;
  }

  static async start(options: CrewOptions): Promise<Crew> {
    const crew = new Crew(options);
    try {
      await crew.replenish();
      return crew;
    } catch (error) {
      await crew[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Those that live, in the order of their numbers. */
  get members(): readonly CrewMember[] {
    return [...this.#members.values()].sort((a, b) => a.index - b.index);
  }

  /** kill −9. Written down before, so that nothing is held against the dead. */
  async kill(member: CrewMember): Promise<void> {
    this.#members.delete(member.index);
    this.#options.recorder.append({ type: 'process-end', of: member.name, how: 'killed' });
    await member.worker.kill();
    member.clock?.[Symbol.dispose]();
  }

  /** Starts those that are missing, under new names. */
  async replenish(): Promise<void> {
    const missing = Array.from({ length: this.#options.workers }, (_, index) => index).filter(
      (index) => !this.#members.has(index),
    );
    // Each comes to its end before one that failed is told: whoever disposes of the crew must know them all.
    const outcomes = await Promise.allSettled(missing.map((index) => this.#start(index)));
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  }

  /** Asks all to end in their own orderly way, and sees that they do. */
  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => this.#stop(member)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.members.map((member) => this.kill(member)));
  }

  async #start(index: number): Promise<void> {
    const { folder, random, registers, url, mutant, lanes, names, ttl, clocks } = this.#options;
    const life = (this.#lives.get(index) ?? 0) + 1;
    this.#lives.set(index, life);
    const name = life === 1 ? `w${index + 1}` : `w${index + 1}#${life}`;
    const config: WorkerConfig = {
      process: name,
      historyFile: join(folder, `${name.replace('#', '-')}${HISTORY_EXTENSION}`),
      registers,
      url: url(index),
      ...(mutant === undefined ? {} : { mutant }),
      names,
      lanes,
      seed: random.fork(name).below(2 ** 31),
      ttl,
    };
    const clock = clocks ? fakeClock() : undefined;
    const program = new URL('./worker.js', import.meta.url);
    const worker = await startWorker(program, clock === undefined ? {} : { clock });
    const member = { name, index, worker, clock };
    this.#members.set(index, member);
    this.#watch(member);
    await worker.call('start', config);
  }

  #watch(member: CrewMember): void {
    void member.worker.exited.then(({ code, signal }) => {
      if (this.#members.get(member.index) !== member) return;
      this.#members.delete(member.index);
      this.#options.recorder.append({ type: 'process-end', of: member.name, how: 'ended' });
      this.#options.troubles.push(
        `${member.name} ended by itself (${signal ?? code}): ${member.worker.output.trim()}`,
      );
    });
  }

  async #stop(member: CrewMember): Promise<void> {
    const giveUp = new AbortController();
    const late = sleep(STOP_WITHIN, 'late' as const, { signal: giveUp.signal }).catch(
      () => 'cancelled' as const,
    );
    const stopped = member.worker.call('stop').then(
      () => 'stopped' as const,
      (error: unknown) => String(error),
    );
    const outcome = await Promise.race([stopped, late]);
    giveUp.abort();
    if (outcome !== 'stopped') {
      const why = outcome === 'late' ? `was still busy ${STOP_WITHIN} ms after it was asked to end` : outcome;
      this.#options.troubles.push(`${member.name} ${why}: ${lastWords(member)}`);
      if (this.#members.has(member.index)) await this.kill(member);
      return;
    }
    this.#members.delete(member.index);
    await member.worker.stop();
    member.clock?.[Symbol.dispose]();
    if (lastWords(member) !== '') this.#options.troubles.push(`${member.name} printed: ${lastWords(member)}`);
  }
}

function lastWords({ worker }: CrewMember): string {
  return worker.output.trim();
}
