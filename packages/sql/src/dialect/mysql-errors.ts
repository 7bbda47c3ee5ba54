import { BackendError } from '@holdfast/core';
import type { Fault } from '../connections.js';

/** What an error of mysql2 means, by the server's error number. */
export function classifyMysql(error: unknown, server: string): Fault {
  const { errno, code } = error as { errno?: unknown; code?: unknown };
  const number = typeof errno === 'number' && errno > 0 ? errno : 0;
  const said = error instanceof Error && error.message !== '' ? error.message : String(code ?? error);
  // Deadlock; lock wait timeout; record changed since last read (MariaDB's snapshot isolation).
  if (number === 1213 || number === 1205 || number === 1020) return { kind: 'again' };
  // Unknown prepared statement handler; it needs to be re-prepared.
  if (number === 1243 || number === 1615) return { kind: 'unprepared' };
  // --read-only, and the two forms of a read-only transaction or engine.
  if (number === 1290 || number === 1792 || number === 1836) {
    return {
      kind: 'read-only',
      error: (permanent) =>
        new BackendError(
          permanent ? 'BACKEND_REFUSED' : 'BACKEND_UNAVAILABLE',
          `${server} is read-only: ${said}; connect to the primary`,
          { cause: error, transient: !permanent },
        ),
    };
  }
  const advice = REFUSED[number];
  if (advice !== undefined) {
    return {
      kind: 'failed',
      error: new BackendError('BACKEND_REFUSED', `${server} refused: ${said}${advice}`, { cause: error }),
      broken: false,
    };
  }
  return {
    kind: 'failed',
    error: new BackendError('BACKEND_UNAVAILABLE', `${server} failed: ${said}`, { cause: error }),
    broken: (error as { fatal?: unknown }).fatal === true || number === 0,
  };
}

const MISSING = '; the tables are missing or old: run `holdfast migrate`, or leave `migrate` on';
const PRIVILEGE =
  '; this user needs SELECT, INSERT, UPDATE and DELETE on the tables, and CREATE unless `holdfast migrate` was run before';

const REFUSED: Readonly<Record<number, string>> = {
  1044: '; this user may not use the database',
  1045: '; check user and password',
  1698: '; check user and password',
  1049: '; create the database first',
  1046: '; name the database in the URL',
  1142: PRIVILEGE,
  1143: PRIVILEGE,
  1227: PRIVILEGE,
  1370: PRIVILEGE,
  1146: MISSING,
  1054: MISSING,
  1064: '',
  1235: '',
  1251: '; the server asks for an authentication that the driver does not speak',
  1406: '',
  1665: '; set binlog_format to ROW or MIXED',
};
