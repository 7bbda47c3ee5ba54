import { BackendError, isHoldfastError } from '@holdfast/core';
import { Abandoned } from '../connections.js';

/** Another connection has the file: asking again soon helps. */
export function isBusy(error: unknown): boolean {
  return /^SQLITE_(BUSY|LOCKED|PROTOCOL)/.test(codeOf(error));
}

/** Turns what a SQLite driver threw into what core understands. */
export function sqliteError(error: unknown, where: string): Error {
  if (isHoldfastError(error) || error instanceof Abandoned) return error;
  const code = codeOf(error);
  const said = error instanceof Error ? error.message : String(error);
  if (isBusy(error)) {
    return new BackendError(
      'BACKEND_UNAVAILABLE',
      `${where} stayed busy: another process holds it open for writing`,
      {
        cause: error,
      },
    );
  }
  if (
    /^SQLITE_(READONLY|CANTOPEN|PERM|AUTH|NOTADB|CORRUPT|ERROR|SCHEMA|MISMATCH)/.test(code) ||
    NO_FOLDER.test(code)
  ) {
    return new BackendError('BACKEND_REFUSED', `${where} cannot be used: ${said}${advice(code, said)}`, {
      cause: error,
    });
  }
  return new BackendError('BACKEND_UNAVAILABLE', `${where} failed: ${said}`, { cause: error });
}

function advice(code: string, said: string): string {
  if (/no such (table|column)/.test(said)) {
    return '; the schema is missing or old: run `holdfast migrate`, or leave `migrate` on';
  }
  if (/^SQLITE_(READONLY|CANTOPEN|PERM)/.test(code) || NO_FOLDER.test(code)) {
    return '; this user must be able to write the file and its folder';
  }
  if (/^SQLITE_(NOTADB|CORRUPT)/.test(code)) return '; it is not a sound SQLite database';
  return '';
}

/** What is said of a folder that cannot be made or entered. */
const NO_FOLDER = /^NODE_(EACCES|EPERM|EROFS|ENOTDIR|EEXIST|ENAMETOOLONG)$/;

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const { code } = error as { code?: unknown };
  if (typeof code === 'string' && code !== '') return code.startsWith('SQLITE_') ? code : `NODE_${code}`;
  // libsql 0.5 gives the code of a failed open only at the end of its message.
  const match = /Unable to open connection.*: (\d+)"?\)?$/.exec(error.message);
  return match === null ? '' : (OPEN_CODES[match[1] ?? ''] ?? '');
}

const OPEN_CODES: Readonly<Record<string, string>> = {
  '5': 'SQLITE_BUSY',
  '8': 'SQLITE_READONLY',
  '14': 'SQLITE_CANTOPEN',
  '23': 'SQLITE_AUTH',
  '26': 'SQLITE_NOTADB',
};
