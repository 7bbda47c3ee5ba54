import { constants } from 'node:os';
import { isHoldfastError } from '@holdfast/core';

/** What the program's exit code says, apart from a command's own. Most are those of sysexits.h. */
export const EXIT = {
  ok: 0,
  /** Something that was looked for is not so: nothing was released, a finding of `doctor` is dangerous. */
  negative: 1,
  usage: 64,
  unavailable: 69,
  internal: 70,
  /** The answer could not be written: a full disk. */
  output: 74,
  /** The lock was busy. */
  busy: 75,
  /** The lock was lost. */
  lost: 76,
  config: 78,
  /** The command was found and could not be started, as in a shell. */
  notExecutable: 126,
  /** The command was not found, as in a shell. */
  notFound: 127,
} as const;

/** The program was used wrongly: the message is for its user. */
export class UsageError extends Error {}

/** As a shell reports a process that a signal ended. */
export function codeOfSignal(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

/** What the program's user is told of an error that ended it. */
export function messageOf(error: unknown): string {
  const { message } = error as Error;
  return isHoldfastError(error, 'MISSING_PACKAGE')
    ? `${message} (beside holdfast itself: with --global if that was installed so)`
    : message;
}

/** The exit code for an error that ended the program. */
export function codeOfError(error: unknown): number {
  if (error instanceof UsageError) return EXIT.usage;
  if (!isHoldfastError(error)) return EXIT.internal;
  switch (error.code) {
    case 'LOCK_TIMEOUT':
      return EXIT.busy;
    case 'LOCK_LOST':
    case 'STALE_TOKEN':
      return EXIT.lost;
    case 'BACKEND_UNAVAILABLE':
    case 'BACKEND_REFUSED':
    case 'UNSUPPORTED':
    case 'LOCKS_CLOSED':
      return EXIT.unavailable;
    case 'INVALID_ARGUMENT':
      return EXIT.usage;
    case 'CONFIG':
    case 'MISSING_PACKAGE':
      return EXIT.config;
  }
}
