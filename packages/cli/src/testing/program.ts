import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The built program. */
export const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** A folder for one test, with the SQLite file that its programs share. */
export class Scratch {
  readonly folder = mkdtempSync(join(tmpdir(), 'holdfast-cli-'));
  readonly url = `sqlite:${this.folder}/locks.db`;
  readonly #programs: Program[] = [];

  /** A path in the folder. */
  path(name: string): string {
    return join(this.folder, name);
  }

  /** A file's lines, none while it is not there. */
  lines(name: string): readonly string[] {
    try {
      return readFileSync(this.path(name), 'utf8').split('\n').filter(Boolean);
    } catch {
      return [];
    }
  }

  /** Starts the program on this folder's locks. */
  holdfast(args: readonly string[], environment: NodeJS.ProcessEnv = {}): Program {
    const program = new Program(args, {
      ...process.env,
      HOLDFAST_URL: this.url,
      SCRATCH: this.folder,
      ...environment,
    });
    this.#programs.push(program);
    return program;
  }

  /** Ends what still runs, and removes the folder. */
  async dispose(): Promise<void> {
    for (const program of this.#programs) program.kill('SIGKILL');
    await Promise.all(this.#programs.map((program) => program.exited));
    rmSync(this.folder, { recursive: true });
  }
}

/** How the program ended, and all that it wrote. */
export interface ProgramEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** One run of the built program in a process of its own. */
export class Program {
  readonly exited: Promise<ProgramEnd>;
  readonly #child: ChildProcess;
  #stdout = '';
  #stderr = '';
  readonly #readers = new Set<() => void>();

  constructor(args: readonly string[], environment: NodeJS.ProcessEnv) {
    this.#child = spawn(process.execPath, [MAIN, ...args], { env: environment, stdio: 'pipe' });
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
      for (const read of this.#readers) read();
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
      for (const read of this.#readers) read();
    });
    this.#child.stdin?.on('error', () => undefined);
    this.exited = new Promise((resolve, reject) => {
      this.#child.once('error', reject);
      this.#child.once('close', (code, signal) => {
        resolve({ code, signal, stdout: this.#stdout, stderr: this.#stderr });
      });
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Writes to its standard input, and ends that. */
  input(text: string): this {
    this.#child.stdin?.end(text);
    return this;
  }

  /** What a list of processes shows of it. */
  commandLine(): string {
    return readFileSync(`/proc/${this.pid}/cmdline`, 'utf8');
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Waits until it has written this; rejects when it ends without. */
  async says(text: string | RegExp): Promise<string> {
    const found = (): string | undefined => {
      const all = `${this.#stdout}\n${this.#stderr}`;
      return typeof text === 'string' ? (all.includes(text) ? text : undefined) : text.exec(all)?.[0];
    };
    return new Promise((resolve, reject) => {
      const read = (): void => {
        const match = found();
        if (match === undefined) return;
        this.#readers.delete(read);
        resolve(match);
      };
      this.#readers.add(read);
      read();
      void this.exited.then(({ code, stderr }) => {
        if (found() === undefined)
          reject(new Error(`it ended with ${code} before it said ${text}: ${stderr}`));
      });
    });
  }
}

/** The state letter of a process: `S` sleeping, `T` stopped, `Z` zombie, empty where there is none. */
export function stateOf(pid: number): string {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return text.charAt(text.lastIndexOf(')') + 2);
  } catch {
    return '';
  }
}

/** True while the process runs (a zombie does not). */
export function isAlive(pid: number): boolean {
  return !['', 'Z', 'X'].includes(stateOf(pid));
}

/** The processes that a process has started and not yet collected. */
export function childrenOf(pid: number): readonly number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);
}

/** Waits until something is so, looking again and again. */
export async function until(what: string, condition: () => boolean, within = 20_000): Promise<void> {
  const deadline = performance.now() + within;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`not within ${within} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
