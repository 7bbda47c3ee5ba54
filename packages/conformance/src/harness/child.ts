import { type ChildProcess, fork } from 'node:child_process';
import type { AcquireOptions } from '@holdfast/core';
import type { ChildSpec } from '../options.js';
import type { Competition, Order, Reply, ToldHold } from '../worker/protocol.js';
import { type Deferred, defer, within } from './time.js';

/** Runs compiled: from the sources it is found beside them in `dist`. */
const WORKER = new URL(
  '../worker/main.js',
  import.meta.url.replace('/conformance/src/', '/conformance/dist/'),
);

const STARTED_WITHIN = 30_000;

let lastStart: Promise<unknown> = Promise.resolve();

type Options = Omit<AcquireOptions, 'signal'>;

/** How a child process ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A rejection in the child process. */
export class ChildError extends Error {
  readonly code: string | undefined;

  constructor(error: { readonly name: string; readonly code?: string; readonly message: string }) {
    super(error.message);
    this.name = error.name;
    this.code = error.code;
  }
}

/** A real process with a `Locks` of its own on the backend under test. */
export class Child {
  readonly #process: ChildProcess;
  readonly #pending = new Map<number, Deferred<unknown>>();
  readonly #lost = new Map<string, Deferred<string>>();
  readonly #told: string[] = [];
  readonly #expecting = new Set<() => void>();
  readonly #exited = defer<Exit>();
  #lastId = 0;
  #output = '';
  #errors = '';

  private constructor() {
    this.#process = fork(WORKER, [], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'], execArgv: [] });
    this.#process.stdout?.on('data', (chunk) => {
      this.#output += String(chunk);
    });
    this.#process.stderr?.on('data', (chunk) => {
      this.#errors += String(chunk);
    });
    this.#process.on('message', (reply: Reply) => this.#hear(reply));
    this.#process.on('error', (error) => this.#fail(error));
    this.#process.on('close', (code, signal) => {
      this.#exited.resolve({ code, signal });
      this.#fail(new Error(`the child process has ended (${signal ?? code}) ${this.#errors}`));
    });
  }

  /** One after another: many that start at once would take the processor from holds that must be renewed. */
  static start(spec: ChildSpec, prefix: string): Promise<Child> {
    const started = lastStart.then(() => Child.#start(spec, prefix));
    lastStart = started.catch(() => undefined);
    return started;
  }

  static async #start(spec: ChildSpec, prefix: string): Promise<Child> {
    const child = new Child();
    try {
      await within('a child process starts', child.#order({ op: 'open', spec, prefix }), STARTED_WITHIN);
    } catch (error) {
      await child.kill();
      throw error;
    }
    return child;
  }

  acquire(name: string, options: Options = {}): Promise<ToldHold> {
    return this.#order({ op: 'acquire', name, options: portable(options) });
  }

  tryAcquire(name: string, options: Options = {}): Promise<ToldHold | null> {
    return this.#order({ op: 'tryAcquire', name, options: portable(options) });
  }

  adopt(serialized: string): Promise<ToldHold> {
    return this.#order({ op: 'adopt', serialized });
  }

  serialize(owner: string): Promise<string> {
    return this.#order({ op: 'serialize', owner });
  }

  isHeld(owner: string): Promise<boolean> {
    return this.#order({ op: 'isHeld', owner });
  }

  release(owner: string): Promise<boolean> {
    return this.#order({ op: 'release', owner });
  }

  block(owner: string, ms: number): Promise<boolean> {
    return this.#order({ op: 'block', owner, ms });
  }

  compete(name: string, rounds: number, inside: string, options: Options = {}): Promise<Competition> {
    return this.#order({ op: 'compete', name, rounds, inside, options: portable(options) });
  }

  /** Resolves when the process has ended, and gives what it printed. */
  async acquireAlone(name: string, options: Options): Promise<{ exit: Exit; output: string }> {
    this.#order({ op: 'acquireAlone', name, options: portable(options) }).catch(() => undefined);
    const exit = await this.exited;
    return { exit, output: this.#output };
  }

  /** Cuts the line: from now on only its own work can keep the process alive. */
  leave(): Promise<Exit> {
    this.#order({ op: 'leave' }).catch(() => undefined);
    return this.exited;
  }

  /** Resolves with the reason when the hold of that owner is told lost. */
  lost(owner: string): Promise<string> {
    const present = this.#lost.get(owner);
    if (present !== undefined) return present.promise;
    const made = defer<string>();
    this.#lost.set(owner, made);
    return made.promise;
  }

  /** Resolves at the `count`th time that this process says that it waits for the name. */
  waiting(name: string, count = 1): Promise<void> {
    return within(`a child process waits for ${JSON.stringify(name)}`, this.#tells(`waiting ${name}`, count));
  }

  /** Resolves when this process has the lock in `compete` for the first time. */
  entered(name: string): Promise<void> {
    return within(`a child process enters ${JSON.stringify(name)}`, this.#tells(`entered ${name}`, 1));
  }

  #tells(what: string, count: number): Promise<void> {
    return new Promise<void>((resolve) => {
      const look = (): void => {
        if (this.#told.filter((told) => told === what).length < count) return;
        this.#expecting.delete(look);
        resolve();
      };
      this.#expecting.add(look);
      look();
    });
  }

  get exited(): Promise<Exit> {
    return this.#exited.promise;
  }

  /** Stops it (SIGSTOP): it does nothing, and knows nothing of it. */
  stop(): void {
    this.#process.kill('SIGSTOP');
  }

  /** Continues it (SIGCONT). */
  resume(): void {
    this.#process.kill('SIGCONT');
  }

  /** Kills it (SIGKILL): no clean-up of any kind. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#exited.promise;
  }

  /** Closes its locks and ends it, whatever state it is in. */
  async end(): Promise<void> {
    this.resume();
    if (this.#process.connected) {
      await within('a child process closes its locks', this.#order({ op: 'close' })).catch(() => undefined);
    }
    await this.kill();
  }

  #order<T>(order: Order): Promise<T> {
    const answered = defer<unknown>();
    const id = ++this.#lastId;
    this.#pending.set(id, answered);
    if (!this.#process.connected) answered.reject(new Error(`the child process has ended ${this.#errors}`));
    else {
      this.#process.send({ id, order }, (error) => {
        if (error !== null) answered.reject(error);
      });
    }
    return answered.promise as Promise<T>;
  }

  #hear(reply: Reply): void {
    if ('event' in reply) {
      if (reply.event === 'lost') {
        void this.lost(reply.owner);
        this.#lost.get(reply.owner)?.resolve(reply.reason);
        return;
      }
      this.#told.push(`${reply.event} ${reply.name}`);
      for (const look of this.#expecting) look();
      return;
    }
    const answered = this.#pending.get(reply.id);
    this.#pending.delete(reply.id);
    if ('error' in reply) answered?.reject(new ChildError(reply.error));
    else answered?.resolve(reply.value);
  }

  #fail(error: Error): void {
    for (const answered of this.#pending.values()) answered.reject(error);
    this.#pending.clear();
  }
}

/** JSON has no Infinity: without `wait` it is the default. */
function portable(options: Options): Options {
  if (options.wait !== Infinity) return options;
  const { wait: _infinite, ...rest } = options;
  return rest;
}
