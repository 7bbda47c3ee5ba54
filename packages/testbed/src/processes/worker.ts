import { type ChildProcess, fork } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isStopped, signalTree } from '../supervisor/process-tree.js';
import { type Exit, supervisor, withoutInjections } from '../supervisor/supervisor.js';
import type { ServerClock } from './clock.js';
import { type Answer, BLOCK, type Call } from './messages.js';

export { serveWorker } from './serve-worker.js';

export interface WorkerOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Options for node, such as `--expose-gc`. */
  readonly execArgv?: readonly string[];
  /** A wall clock of its own. */
  readonly clock?: ServerClock;
}

/**
 * A Node process that serves calls (see `serveWorker`), with the faults that a process can have. It dies with the
 * process that started it, however that ends.
 */
export interface Worker extends AsyncDisposable {
  readonly pid: number;
  /** Calls a command of the worker. Rejects with its error, or when the worker goes before it answers. */
  call<Result = unknown>(command: string, argument?: unknown): Promise<Result>;
  /** Hands every event that the worker emits to the listener, until the returned function is called. */
  onEvent(listener: (name: string, value: unknown) => void): () => void;
  /** The next event of that name, from now on. Rejects when the worker goes first. */
  event<Value = unknown>(name: string): Promise<Value>;
  /** Blocks the worker's event loop for so many milliseconds. Resolves as the block begins. */
  block(milliseconds: number): Promise<void>;
  /** SIGSTOP: resolves when the process stands still. */
  pause(): Promise<void>;
  /** SIGCONT. */
  resume(): Promise<void>;
  /** kill −9: resolves when the process has gone. */
  kill(): Promise<void>;
  /** Closes its channel: the worker runs its `onStop` and exits. Resolves with its exit code. */
  stop(): Promise<number | null>;
  /** Resolves when the process has gone, however. */
  readonly exited: Promise<Exit>;
  /** What it printed to stdout and stderr so far. */
  readonly output: string;
}

/** Starts a JavaScript module as a worker and resolves when it serves. */
export async function startWorker(module: URL | string, options: WorkerOptions = {}): Promise<Worker> {
  const child = fork(module instanceof URL ? fileURLToPath(module) : module, options.args ?? [], {
    execArgv: [...(options.execArgv ?? [])],
    env: { ...withoutInjections(process.env), ...options.env, ...options.clock?.env },
    serialization: 'advanced',
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const worker = new ChildWorker(child);
  await worker.ready;
  return worker;
}

interface Pending {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

class ChildWorker implements Worker {
  readonly pid: number;
  readonly exited: Promise<Exit>;
  readonly ready: Promise<void>;
  readonly #child: ChildProcess;
  readonly #pending = new Map<number, Pending>();
  readonly #events = new EventEmitter().setMaxListeners(0);
  #nextId = 1;
  #output = '';

  constructor(child: ChildProcess) {
    if (child.pid === undefined) throw new Error('The worker could not be started.');
    this.#child = child;
    this.pid = child.pid;
    // A worker that is stopped or busy cannot see that we have gone.
    supervisor().tell({ type: 'adopt', pid: this.pid });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text;
      });
    }
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        supervisor().tell({ type: 'release', pid: this.pid });
        resolve({ code, signal });
        this.#gone(code, signal);
      });
    });
    this.ready = this.#answerTo(0);
    child.on('message', (answer: Answer) => this.#receive(answer));
    child.on('error', () => undefined);
  }

  get output(): string {
    return this.#output;
  }

  call<Result>(command: string, argument?: unknown): Promise<Result> {
    const id = this.#nextId++;
    const answer = this.#answerTo<Result>(id);
    const call: Call = { id, command, argument };
    this.#child.send(call, (error) => {
      if (error !== null) this.#settle(id)?.reject(error);
    });
    return answer;
  }

  onEvent(listener: (name: string, value: unknown) => void): () => void {
    this.#events.on('event', listener);
    return () => this.#events.off('event', listener);
  }

  event<Value>(name: string): Promise<Value> {
    return new Promise((resolve, reject) => {
      const stop = this.onEvent((emitted, value) => {
        if (emitted !== name) return;
        stop();
        resolve(value as Value);
      });
      void this.exited.then(() => {
        stop();
        reject(new Error(`The worker has gone before its event ${name}.\n${this.#output}`));
      });
    });
  }

  async block(milliseconds: number): Promise<void> {
    await this.call(BLOCK, milliseconds);
  }

  async pause(): Promise<void> {
    signalTree(this.pid, 'SIGSTOP');
    while (!isStopped(this.pid)) await sleep(1);
  }

  async resume(): Promise<void> {
    signalTree(this.pid, 'SIGCONT');
  }

  async kill(): Promise<void> {
    if (this.#isGone) return;
    signalTree(this.pid, 'SIGKILL');
    await this.exited;
  }

  async stop(): Promise<number | null> {
    if (!this.#isGone) {
      await this.resume();
      if (this.#child.connected) this.#child.disconnect();
    }
    return (await this.exited).code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  get #isGone(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  #answerTo<Result>(id: number): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve: resolve as (value: unknown) => void, reject });
    });
  }

  #settle(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }

  #receive(answer: Answer): void {
    switch (answer.type) {
      case 'ready':
        return void this.#settle(0)?.resolve(undefined);
      case 'result':
        return void this.#settle(answer.id)?.resolve(answer.value);
      case 'error': {
        const { message, ...rest } = answer.error;
        return void this.#settle(answer.id)?.reject(Object.assign(new Error(message), rest));
      }
      case 'event':
        return void this.#events.emit('event', answer.name, answer.value);
    }
  }

  #gone(code: number | null, signal: NodeJS.Signals | null): void {
    const how = signal ?? `exit code ${code}`;
    for (const id of [...this.#pending.keys()])
      this.#settle(id)?.reject(new Error(`The worker has gone (${how}).\n${this.#output}`));
  }
}
