import type { ServerClock } from './clock.js';

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
 * process that started it.
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
  /** Lets the worker end by itself, by closing its channel. Resolves with its exit code. */
  stop(): Promise<number | null>;
  /** Resolves when the process has gone, however. */
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** What it printed to stdout and stderr so far. */
  readonly output: string;
}

/** Starts a JavaScript module as a worker and resolves when it serves. */
export function startWorker(_module: URL | string, _options?: WorkerOptions): Promise<Worker> {
  throw new Error('not written yet');
}

/** The worker's side: answers calls by name until the channel closes. `emit` sends an event to the parent. */
export function serveWorker(_commands: Readonly<Record<string, (argument: never) => unknown>>): {
  emit(name: string, value?: unknown): void;
} {
  throw new Error('not written yet');
}
