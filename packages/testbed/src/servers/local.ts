import { spawnSync } from 'node:child_process';
import { chown, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isStopped } from '../supervisor/process-tree.js';
import { type SupervisedProcess, supervisor, withoutInjections } from '../supervisor/supervisor.js';
import { ownFolder, removeFolder, writeFiles } from './folder.js';
import { findProgram } from './install.js';
import type { Runtime } from './node.js';
import type { ProcessSpec } from './spec.js';

// An orderly end may have to write data out; longer than this is a hang.
const ORDERLY_END = 15_000;

/** Runs a server from this machine's binaries, in a folder of its own under the system's temporary one. */
export class LocalRuntime implements Runtime {
  readonly #spec: ProcessSpec;
  #folder: string | undefined;
  #process: SupervisedProcess | undefined;

  constructor(spec: ProcessSpec) {
    this.#spec = spec;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  get ended(): Promise<unknown> {
    return this.#process?.exited ?? Promise.resolve();
  }

  async launch(): Promise<void> {
    if (this.#folder === undefined) await this.#prepare();
    const [program, ...args] = this.#spec.command(this.#place);
    this.#process = await supervisor().spawn({
      command: findProgram(program),
      args,
      cwd: this.#home,
      env: { ...withoutInjections(process.env), ...this.#spec.env },
      logFile: this.#logFile,
      ...accountOf(this.#spec.local?.user),
    });
  }

  async terminate(): Promise<void> {
    await this.#process?.signal(this.#spec.stopSignal ?? 'SIGTERM');
    const patience = new AbortController();
    const hang = sleep(ORDERLY_END, 'hang', { signal: patience.signal }).catch(() => 'ended');
    const outcome = await Promise.race([hang, this.#process?.gone()]);
    patience.abort();
    if (outcome === 'hang') await this.kill();
  }

  async kill(): Promise<void> {
    await this.#process?.signal('SIGKILL');
    await this.#process?.gone();
  }

  async pause(): Promise<void> {
    await this.#process?.signal('SIGSTOP');
    while (this.pid !== undefined && !isStopped(this.pid)) await sleep(1);
  }

  async resume(): Promise<void> {
    await this.#process?.signal('SIGCONT');
  }

  log(): Promise<string> {
    return readFile(this.#logFile, 'utf8');
  }

  async remove(): Promise<void> {
    if (this.#folder !== undefined) await removeFolder(this.#folder);
  }

  get #home(): string {
    if (this.#folder === undefined) throw new Error(`${this.#spec.name} has not been started yet.`);
    return this.#folder;
  }

  get #place() {
    return { home: this.#home, bind: '127.0.0.1', machine: '127.0.0.1' };
  }

  get #logFile(): string {
    return join(this.#home, 'server.log');
  }

  async #prepare(): Promise<void> {
    const home = await ownFolder(this.#spec.name);
    this.#folder = home;
    await writeFiles(home, { 'server.log': '', ...this.#spec.files?.(this.#place) });
    await this.#spec.local?.prepare?.(home);
    await giveTo(this.#spec.local?.user, home);
  }
}

interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** The ids of an account, when we are root and may become it; nothing otherwise. */
export function accountOf(user: string | undefined): Account | undefined {
  if (user === undefined || process.getuid?.() !== 0) return undefined;
  const [uid, gid] = ['-u', '-g'].map((flag) =>
    Number(spawnSync('id', [flag, user], { encoding: 'utf8' }).stdout.trim() || Number.NaN),
  );
  if (uid === undefined || gid === undefined || Number.isNaN(uid) || Number.isNaN(gid))
    throw new Error(`This machine has no account named ${user}, as which the server would run.`);
  return { uid, gid };
}

export async function giveTo(user: string | undefined, path: string): Promise<void> {
  const account = accountOf(user);
  if (account === undefined) return;
  await chown(path, account.uid, account.gid);
  const { status, stderr } = spawnSync('chown', ['-R', `${account.uid}:${account.gid}`, path], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`The folder of the server could not be given to ${user}: ${stderr}`);
}
