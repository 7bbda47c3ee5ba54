import { UNPRINTABLE } from './text.js';

/** Where the program writes: its results to `out`, everything else to `err`. */
export interface Output {
  out(line: string): void;
  err(line: string): void;
}

/** The process's own streams. A reader that went away (`| head`) ends the output, not the program with an error. */
export function standardOutput(): Output {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') process.exitCode = 74;
    });
  }
  return {
    out: (line) => void process.stdout.write(`${line}\n`),
    err: (line) => void process.stderr.write(`${line}\n`),
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
