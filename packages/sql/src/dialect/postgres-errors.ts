import { BackendError } from '@holdfast/core';
import type { Fault } from '../connections.js';

/** What an error of pg means. SQLSTATE codes: https://www.postgresql.org/docs/current/errcodes-appendix.html */
export function classifyPostgres(error: unknown, server: string): Fault {
  const { code } = error as { code?: unknown };
  const state = typeof code === 'string' ? code : '';
  const said = error instanceof Error ? error.message : String(error);
  if (/^(40001|40P01|55P03)$/.test(state)) return { kind: 'again' };
  if (/^(26000|42P05|0A000)$/.test(state) && /prepared statement|cached plan/.test(said))
    return { kind: 'unprepared' };
  if (state === '25006') {
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
  if (said === 'The server does not support SSL connections') {
    const message = `${server} does not speak TLS: remove sslmode from the URL, or turn ssl on at the server`;
    const refusal = new BackendError('BACKEND_REFUSED', message, { cause: error });
    return { kind: 'failed', error: refusal, broken: true };
  }
  if (state === '28000' && /no encryption|SSL off/.test(said)) {
    const message = `${server} refused: ${said}; it may want TLS: add sslmode=verify-full to the URL`;
    return {
      kind: 'failed',
      error: new BackendError('BACKEND_REFUSED', message, { cause: error }),
      broken: false,
    };
  }
  const refused = REFUSED.find(([pattern]) => pattern.test(state));
  if (refused !== undefined) {
    const message = `${server} refused: ${said}${refused[1]}`;
    return {
      kind: 'failed',
      error: new BackendError('BACKEND_REFUSED', message, { cause: error }),
      broken: false,
    };
  }
  // What is left is a server that goes down, comes up, is full, or a connection that broke: worth another try.
  const answered = /^[0-9A-Z]{5}$/.test(state) && !/^(08|57P)/.test(state);
  return {
    kind: 'failed',
    error: new BackendError('BACKEND_UNAVAILABLE', `${server} failed: ${said}`, { cause: error }),
    broken: !answered,
  };
}

const REFUSED: readonly (readonly [RegExp, string])[] = [
  [/^28/, '; check user and password'],
  [/^3D000$/, '; create the database first'],
  [
    /^42501$/,
    '; this role needs SELECT, INSERT, UPDATE and DELETE on the tables, USAGE on their schema, and CREATE on it unless `holdfast migrate` was run before',
  ],
  [/^(42P01|42703|3F000)$/, '; the tables are missing or old: run `holdfast migrate`, or leave `migrate` on'],
  [/^(0A|22|23|42)/, ''],
];
