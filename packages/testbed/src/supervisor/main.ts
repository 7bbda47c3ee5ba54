/**
 * Runs the servers of one test process, and outlives it just long enough to remove them: the channel to the test
 * process closes however that process ends, even by kill −9, and then everything goes. In a session of its own, so
 * that an interrupt typed at the terminal does not end it before its work is done.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import type { FinalRequest, ProcessOptions, Report, Request } from './messages.js';
import { signalTree } from './process-tree.js';

const running = new Map<number, ChildProcess>();
const adopted = new Set<number>();
const owned = new Set<string>();
const atTheEnd = new Map<string, FinalRequest>();
let ending = false;

process.on('message', (message: Request) => handle(message));
process.on('disconnect', () => void end());
process.on('SIGTERM', () => void end());

function handle(message: Request): void {
  switch (message.type) {
    case 'spawn':
      return void start(message.id, message.process);
    case 'signal':
      return void signal(message.id, message.key, message.signal);
    case 'own':
      return void owned.add(message.path);
    case 'disown':
      return void owned.delete(message.path);
    case 'adopt':
      return void adopted.add(message.pid);
    case 'release':
      return void adopted.delete(message.pid);
    case 'finally':
      return void atTheEnd.set(message.key, message.request);
    case 'forget':
      return void atTheEnd.delete(message.key);
  }
}

function start(id: number, options: ProcessOptions): void {
  if (ending) return;
  const log = openSync(options.logFile, 'a');
  const child = spawn(options.command, options.args, {
    cwd: options.cwd,
    env: options.env,
    stdio: ['ignore', log, log],
    detached: true,
    ...(options.uid !== undefined && { uid: options.uid }),
    ...(options.gid !== undefined && { gid: options.gid }),
  });
  closeSync(log);
  child.once('spawn', () => {
    running.set(id, child);
    report({ type: 'done', id, ...(child.pid !== undefined && { pid: child.pid }) });
  });
  child.once('error', (error) => report({ type: 'failed', id, message: error.message }));
  child.once('exit', (code, signal) => {
    running.delete(id);
    report({ type: 'exited', key: id, code, signal });
  });
}

function signal(id: number, key: number, name: NodeJS.Signals): void {
  const pid = running.get(key)?.pid;
  // Only the leading process ends its children in order; everything else is done to all of them.
  if (pid !== undefined && (name === 'SIGTERM' || name === 'SIGINT')) process.kill(pid, name);
  else if (pid !== undefined) signalTree(pid, name);
  report({ type: 'done', id });
}

async function end(): Promise<void> {
  if (ending) return;
  ending = true;
  await Promise.all(
    [...running.values()].map(async (child) => {
      const exited = once(child, 'exit');
      if (child.pid !== undefined) signalTree(child.pid, 'SIGKILL');
      await exited;
    }),
  );
  for (const pid of adopted) signalTree(pid, 'SIGKILL');
  await Promise.all([...atTheEnd.values()].map(ask));
  for (const path of owned) rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  process.exit(0);
}

/** Resolves with the answer or without: nobody is left to be told of a failure. */
function ask(options: FinalRequest): Promise<void> {
  return new Promise((resolve) => {
    request({ ...options, timeout: 30_000 }, (incoming) => {
      incoming.resume();
      incoming.once('close', () => resolve());
    })
      .once('error', () => resolve())
      .once('timeout', () => resolve())
      .end();
  });
}

function report(message: Report): void {
  if (process.connected) process.send?.(message, () => undefined);
}
