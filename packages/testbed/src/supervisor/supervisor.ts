import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Notice, ProcessOptions, Report, Request } from './messages.js';

/** How a supervised process ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A process that dies with this one. */
export interface SupervisedProcess {
  readonly pid: number;
  /** Settles when it has gone. Awaiting it does not keep this process alive; `gone` does. */
  readonly exited: Promise<Exit>;
  gone(): Promise<Exit>;
  /** SIGTERM and SIGINT go to the process, all other signals to its descendants too. Resolves when sent. */
  signal(signal: NodeJS.Signals): Promise<void>;
}

interface Pending {
  resolve(pid: number | undefined): void;
  reject(error: Error): void;
}

/**
 * This process's side of the supervisor (`main.ts`): started with the first server, gone with this process. It never
 * keeps this process alive, except while a request is under way.
 */
class Supervisor {
  readonly #child: ChildProcess;
  readonly #pending = new Map<number, Pending>();
  readonly #exits = new Map<number, (exit: Exit) => void>();
  #nextId = 1;
  #awaited = 0;

  constructor() {
    // The compiled file, also when this one is run from its source.
    this.#child = fork(new URL('../../dist/supervisor/main.js', import.meta.url), {
      detached: true,
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      execArgv: [],
      env: withoutInjections(process.env),
    });
    this.#child.on('message', (report: Report) => this.#receive(report));
    this.#child.once('exit', () => this.#gone());
    this.#child.once('error', () => this.#gone());
    this.#release();
  }

  get connected(): boolean {
    return this.#child.connected;
  }

  async spawn(options: ProcessOptions): Promise<SupervisedProcess> {
    const key = this.#nextId++;
    const exited = new Promise<Exit>((resolve) => this.#exits.set(key, resolve));
    const pid = await this.#ask({ type: 'spawn', id: key, process: options });
    if (pid === undefined) throw new Error(`${options.command} started without a process id.`);
    return {
      pid,
      exited,
      gone: () => this.#keepAlive(exited),
      signal: async (signal) => void (await this.#ask({ type: 'signal', id: this.#nextId++, key, signal })),
    };
  }

  tell(notice: Notice): void {
    // A supervisor that has gone has nothing left to look after.
    this.#child.send(notice, () => undefined);
  }

  /** Ends the supervisor and all that it runs; resolves when it has gone. */
  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.ref();
    const exited = once(this.#child, 'exit');
    if (this.#child.connected) this.#child.disconnect();
    await exited;
  }

  #ask(request: Extract<Request, { id: number }>): Promise<number | undefined> {
    const answer = new Promise<number | undefined>((resolve, reject) => {
      this.#pending.set(request.id, { resolve, reject });
      this.#child.send(request, (error) => {
        if (error !== null) this.#settle(request.id)?.reject(error);
      });
    });
    return this.#keepAlive(answer);
  }

  #receive(report: Report): void {
    switch (report.type) {
      case 'done':
        return void this.#settle(report.id)?.resolve(report.pid);
      case 'failed':
        return void this.#settle(report.id)?.reject(new Error(report.message));
      case 'exited': {
        const resolve = this.#exits.get(report.key);
        this.#exits.delete(report.key);
        return void resolve?.({ code: report.code, signal: report.signal });
      }
    }
  }

  #settle(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }

  async #keepAlive<Value>(promise: Promise<Value>): Promise<Value> {
    if (this.#awaited++ === 0) this.#child.channel?.ref();
    try {
      return await promise;
    } finally {
      if (--this.#awaited === 0) this.#release();
    }
  }

  #release(): void {
    this.#child.unref();
    this.#child.channel?.unref();
  }

  #gone(): void {
    for (const id of this.#pending.keys()) this.#settle(id)?.reject(new Error('The supervisor has gone.'));
    for (const resolve of this.#exits.values()) resolve({ code: null, signal: 'SIGKILL' });
    this.#exits.clear();
  }
}

let current: Supervisor | undefined;

/** The supervisor of this process. */
export function supervisor(): Supervisor {
  if (current?.connected !== true) current = new Supervisor();
  return current;
}

/** Ends every supervised process and removes every owned folder, if there are any. */
export async function endSupervisor(): Promise<void> {
  const last = current;
  current = undefined;
  await last?.end();
}

/** What test runners and fake clocks inject into processes is not for the servers. */
export function withoutInjections(environment: NodeJS.ProcessEnv): Record<string, string> {
  const injected = /^(NODE_|LD_PRELOAD$|FAKETIME|VITEST|TEST$)/;
  return Object.fromEntries(
    Object.entries(environment).filter((entry): entry is [string, string] => {
      return entry[1] !== undefined && !injected.test(entry[0]);
    }),
  );
}
