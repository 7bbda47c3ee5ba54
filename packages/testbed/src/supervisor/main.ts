/**
 * Runs the servers of one test process, and outlives it just long enough to remove them: the channel to the test
 * process closes however that process ends, even by kill −9, and then everything goes. In a session of its own, so
 * that an interrupt typed at the terminal does not end it before its work is done.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, rmSync } from 'node:fs';
import type { ProcessOptions, Report, Request } from './messages.js';
import { signalTree } from './process-tree.js';

const running = new Map<number, ChildProcess>();
const adopted = new Set<number>();
const owned = new Set<string>();
const atTheEnd = new Map<string, readonly string[]>();
let ending = false;

process.on('message', (request: Request) => handle(request));
process.on('disconnect', () => void end());
process.on('SIGTERM', () => void end());

function handle(request: Request): void {
  switch (request.type) {
    case 'spawn':
      return void start(request.id, request.process);
    case 'signal':
      return void signal(request.id, request.key, request.signal);
    case 'own':
      return void owned.add(request.path);
    case 'disown':
      return void owned.delete(request.path);
    case 'adopt':
      return void adopted.add(request.pid);
    case 'release':
      return void adopted.delete(request.pid);
    case 'finally':
      return void atTheEnd.set(request.key, request.command);
    case 'forget':
      return void atTheEnd.delete(request.key);
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
  for (const [program, ...args] of atTheEnd.values()) {
    if (program !== undefined) spawnSync(program, args, { stdio: 'ignore', timeout: 30_000 });
  }
  for (const path of owned) rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  process.exit(0);
}

function report(message: Report): void {
  if (process.connected) process.send?.(message, () => undefined);
}
