import { EXIT } from './exit.js';
import { fit, UNPRINTABLE } from './text.js';

/** Where the program writes: its results to `out`, everything else to `err`. */
export interface Output {
  out(line: string): void;
  err(line: string): void;
  /** Where standard error is a terminal: a line below the others that is written over. */
  readonly status?: StatusLine;
}

/** One line of a terminal that is written over until it is wiped. */
export class StatusLine {
  readonly #stream: NodeJS.WriteStream;
  #shown = false;

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream;
  }

  /** How many columns a text may have. */
  get width(): number {
    return Math.max(20, (this.#stream.columns ?? 80) - 1);
  }

  /** Shows a text, as much of it as fits, in place of the one before. */
  show(text: string): void {
    this.#shown = true;
    this.#stream.write(`\r${fit(text, this.width)}\u001b[K`);
  }

  wipe(): void {
    if (this.#shown) this.#stream.write('\r\u001b[K');
    this.#shown = false;
  }
}

/**
 * The process's own streams. A reader that went away (`| head`) ends the output, not the program with an error. What is
 * told on standard error is beside the point: where it cannot be written, the work and its exit code go on.
 */
export function standardOutput(): Output {
  process.stderr.on('error', () => undefined);
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') process.exitCode = EXIT.output;
  });
  const status = process.stderr.isTTY ? new StatusLine(process.stderr) : undefined;
  return {
    out: (line) => void process.stdout.write(`${line}\n`),
    err: (line) => {
      status?.wipe();
      process.stderr.write(`${line}\n`);
    },
    ...(status === undefined ? {} : { status }),
  };
}

/**
 * JSON on one line; tokens as strings. What JSON would leave as it stands and a terminal would obey (C1 controls,
 * direction marks) is escaped: it is the same to a program.
 */
export function json(value: unknown): string {
  const text = JSON.stringify(value, (_key, each: unknown) =>
    typeof each === 'bigint' ? String(each) : each,
  );
  return text.replace(UNPRINTABLE, (character) =>
    Array.from(
      { length: character.length },
      (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}
