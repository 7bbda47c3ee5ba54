import { type Locks, sleep, systemClock } from '@holdfast/core';
import { json, type Output } from '../output.js';
import { fit, printable, quoted, table } from '../text.js';
import { collect, HEADINGS, row } from './list.js';

/** The options of `watch`. */
export interface WatchFlags {
  readonly prefix?: string;
  readonly interval: number;
  /** How many looks; without it until a signal comes. */
  readonly count?: number;
  readonly json?: boolean;
}

const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Shows the locks again and again: on a terminal in place, elsewhere one table or one JSON object for each look.
 * Ends with Ctrl-C.
 */
export async function watch(locks: Locks, flags: WatchFlags, output: Output): Promise<void> {
  const ended = new AbortController();
  const end = (): void => ended.abort();
  for (const signal of ENDING) process.on(signal, end);
  // Whoever read has gone (`| head`): nobody would ever see another look.
  process.stdout.on('error', end);
  const live = flags.json !== true && process.stdout.isTTY;
  const screen = live ? new Screen(process.stdout) : undefined;
  try {
    for (let look = 1; !ended.signal.aborted; look++) {
      const text = await describe(locks, flags);
      if (screen === undefined) output.out(text);
      else screen.show(text);
      if (look === flags.count) return;
      await sleep(systemClock, flags.interval, ended.signal, { keepAlive: true });
    }
  } finally {
    screen?.dispose();
    process.stdout.off('error', end);
    for (const signal of ENDING) process.off(signal, end);
  }
}

async function describe(locks: Locks, { prefix, json: asJson }: WatchFlags): Promise<string> {
  const at = new Date(systemClock.wall());
  try {
    const states = await collect(locks, prefix);
    if (asJson === true) return json({ at, locks: states });
    const count = states.length === 1 ? '1 lock is' : `${states.length || 'no'} locks are`;
    const head = `${at.toISOString()}  ${locks.backend.name}: ${count} held or waited for`;
    const rows = states.map((state) => row(state, at.getTime()));
    const waiting = states.flatMap(({ name, waiters }) =>
      waiters.map(
        ({ position, owner }) => `${String(position).padStart(4)}  ${quoted(name)}  ${printable(owner)}`,
      ),
    );
    return [
      `${head}\n`,
      ...(rows.length === 0 ? [] : [table(HEADINGS, rows)]),
      ...(waiting.length === 0 ? [] : ['\nWAITING', ...waiting]),
    ].join('\n');
  } catch (error) {
    // A backend that comes back is worth waiting for: the next look asks again.
    const { message } = error as Error;
    return asJson === true ? json({ at, error: message }) : `${at.toISOString()}  ${printable(message)}`;
  }
}

const SCREEN = {
  enter: '\u001b[?1049h\u001b[?25l',
  leave: '\u001b[?25h\u001b[?1049l',
  clear: '\u001b[H\u001b[2J',
};

/** The terminal's second screen: what was on the first is there again afterwards, and while Ctrl-Z stops the program. */
class Screen {
  readonly #stream: NodeJS.WriteStream;
  #text = '';

  readonly #stop = (): void => {
    this.#stream.write(SCREEN.leave);
    process.kill(process.pid, 'SIGSTOP');
  };

  readonly #goOn = (): void => {
    this.#stream.write(SCREEN.enter);
    this.show(this.#text);
  };

  readonly #resized = (): void => this.show(this.#text);

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream;
    stream.write(SCREEN.enter);
    stream.on('resize', this.#resized);
    process.on('SIGTSTP', this.#stop);
    process.on('SIGCONT', this.#goOn);
  }

  show(text: string): void {
    this.#text = text;
    this.#stream.write(`${SCREEN.clear}${cut(text, this.#stream)}\n`);
  }

  dispose(): void {
    process.off('SIGTSTP', this.#stop);
    process.off('SIGCONT', this.#goOn);
    this.#stream.off('resize', this.#resized);
    this.#stream.write(SCREEN.leave);
  }
}

/** As much as the terminal shows: lines that wrap would push the head out of sight. */
function cut(text: string, { rows = 24, columns = 80 }: NodeJS.WriteStream): string {
  const lines = text.split('\n').map((line) => fit(line, columns));
  const shown = lines.slice(0, rows - 1);
  const hidden = lines.length - shown.length;
  return (hidden === 0 ? shown : [...shown.slice(0, -1), `… and ${hidden + 1} lines more`]).join('\n');
}
