import { setTimeout as sleep } from 'node:timers/promises';
import type { NodeState, ServerNode } from './handle.js';
import type { ProcessSpec } from './spec.js';

/** How a provider runs one process. The calls come one at a time and in a sensible order: `ManagedNode` sees to that. */
export interface Runtime {
  readonly pid: number | undefined;
  /** Starts the process; resolves when it exists. */
  launch(): Promise<void>;
  /** Settles when the process that was launched last has ended by itself. */
  readonly ended: Promise<unknown>;
  /** Orderly, or by force after some seconds. Resolves when it has gone. */
  terminate(): Promise<void>;
  kill(): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  log(): Promise<string>;
  /** Removes everything that belongs to the process, which has ended. */
  remove(): Promise<void>;
}

/** A node that a provider of ours runs. Operations queue up: each begins when the one before has ended. */
export class ManagedNode implements ServerNode {
  readonly host = '127.0.0.1';
  readonly #spec: ProcessSpec;
  readonly #runtime: Runtime;
  readonly #startTimeout: number;
  #state: NodeState = 'stopped';
  #last: Promise<unknown> = Promise.resolve();

  constructor(spec: ProcessSpec, runtime: Runtime, startTimeout = 60_000) {
    this.#spec = spec;
    this.#runtime = runtime;
    this.#startTimeout = startTimeout;
  }

  get name(): string {
    return this.#spec.name;
  }

  get port(): number {
    return this.#spec.port;
  }

  get address(): string {
    return `${this.host}:${this.port}`;
  }

  get url(): string {
    return this.#spec.url;
  }

  get state(): NodeState {
    return this.#state;
  }

  get pid(): number | undefined {
    return this.#state === 'stopped' ? undefined : this.#runtime.pid;
  }

  start(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#launch();
      await this.#serving();
    });
  }

  /** Starts the process without waiting until it serves: members of a group serve only together. */
  launch(): Promise<void> {
    return this.#inTurn(() => this.#launch());
  }

  /** Resolves when a launched process serves. */
  serving(): Promise<void> {
    return this.#inTurn(() => this.#serving());
  }

  stop(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#state === 'stopped') return;
      if (this.#state === 'paused') await this.#runtime.resume();
      await this.#runtime.terminate();
      this.#state = 'stopped';
    });
  }

  kill(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#state === 'stopped') return;
      await this.#runtime.kill();
      this.#state = 'stopped';
    });
  }

  async restart({ by = 'stop' }: { readonly by?: 'stop' | 'kill' } = {}): Promise<void> {
    await this[by]();
    await this.start();
  }

  pause(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#state === 'stopped') throw new Error(`${this.name} cannot be paused: it is stopped.`);
      if (this.#state === 'paused') return;
      await this.#runtime.pause();
      this.#state = 'paused';
    });
  }

  resume(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#state !== 'paused') return;
      await this.#runtime.resume();
      this.#state = 'running';
    });
  }

  log(): Promise<string> {
    return this.#runtime.log();
  }

  /** Kills the process, wherever it stands, and removes its data. */
  async remove(): Promise<void> {
    await this.kill();
    await this.#inTurn(() => this.#runtime.remove());
  }

  async #launch(): Promise<void> {
    if (this.#state !== 'stopped') return;
    await this.#runtime.launch();
    this.#state = 'running';
  }

  async #serving(): Promise<void> {
    const giveUp = performance.now() + this.#startTimeout;
    let ended = false;
    void this.#runtime.ended.then(() => {
      ended = true;
    });
    for (;;) {
      try {
        return await this.#spec.ready();
      } catch (error) {
        if (ended) await this.#failed('ended while it started', error);
        if (performance.now() > giveUp)
          await this.#failed(`does not serve after ${this.#startTimeout} ms`, error);
      }
      await sleep(25);
    }
  }

  async #failed(what: string, cause: unknown): Promise<never> {
    const log = await this.#runtime.log().catch(() => '');
    const tail = log.trimEnd().split('\n').slice(-15).join('\n');
    await this.#runtime.kill();
    this.#state = 'stopped';
    throw new Error(`${this.name} ${what}. It says:\n${tail}`, { cause });
  }

  #inTurn<Value>(operation: () => Promise<Value>): Promise<Value> {
    const result = this.#last.then(operation);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
