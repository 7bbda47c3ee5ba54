import type { BackendOptions, OptionType } from '@holdfast/core';
import { ConfigError } from '@holdfast/core';

/** The URL schemes that this package serves. */
export const schemes: readonly string[] = ['sqlite', 'postgres', 'postgresql', 'mysql', 'mariadb'];

/** The options besides `url` and `prefix`. */
export const options: Readonly<Record<string, OptionType>> = {
  table: 'string',
  migrate: 'boolean',
  pool: 'integer',
  retention: 'duration',
  sweepEvery: 'duration',
  journal: 'string',
};

/** What may be set, by `createBackend` and `sqlBackend` alike. */
export interface SqlOptions {
  /** Isolates tenants that share a database: 1 to 64 of `A-Z a-z 0-9 . _ -`. Default `holdfast`. */
  readonly prefix?: string;
  /** How the tables' names begin: 1 to 40 of `a-z 0-9 _`. Default `holdfast`. */
  readonly table?: string;
  /** Make and update the tables when opened. Default true; with false, `holdfast migrate` or a knex migration does. */
  readonly migrate?: boolean;
  /** ms that the row of a free lock is kept, and with it the fence. Default 1 day. */
  readonly retention?: number;
  /** ms between sweeps of this instance, on average; 0 for none. Default 1 minute. */
  readonly sweepEvery?: number;
  /**
   * SQLite only: `wal` (default), or `delete` on file systems where a write-ahead log does not work, since it needs
   * shared memory. Every process must say the same.
   */
  readonly journal?: 'wal' | 'delete';
}

/** The options with their defaults. */
export type SqlSettings = Required<SqlOptions>;

/** What a URL may set besides: connections of our own, at most. Each is lent for a statement at a time. */
export const DEFAULT_POOL = 10;

/**
 * Fills in defaults.
 *
 * @throws ConfigError naming the option, its value and what is allowed
 */
export function settingsOf(given: SqlOptions): SqlSettings {
  const settings = {
    prefix: given.prefix ?? 'holdfast',
    table: given.table ?? 'holdfast',
    migrate: given.migrate ?? true,
    retention: given.retention ?? 24 * 60 * 60 * 1000,
    sweepEvery: given.sweepEvery ?? 60_000,
    journal: given.journal ?? ('wal' as const),
  };
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(settings.prefix)) {
    throw new ConfigError(
      `sql: prefix is ${JSON.stringify(settings.prefix)}; allowed: 1 to 64 of A-Z a-z 0-9 . _ -`,
    );
  }
  if (!/^[a-z0-9_]{1,40}$/.test(settings.table)) {
    throw new ConfigError(
      `sql: table is ${JSON.stringify(settings.table)}; allowed: 1 to 40 of a-z 0-9 _ (the tables' names begin with it)`,
    );
  }
  if (!['wal', 'delete'].includes(settings.journal)) {
    throw new ConfigError(`sql: journal is ${JSON.stringify(settings.journal)}; allowed: wal, delete`);
  }
  for (const name of ['retention', 'sweepEvery'] as const) {
    if (!(settings[name] >= 0)) {
      throw new ConfigError(`sql: ${name} is ${settings[name]}; allowed: milliseconds, zero or more`);
    }
  }
  return settings;
}

/** The options as `connect()` hands them over: their types have been checked against {@link options}. */
export function sqlOptionsOf(given: BackendOptions): SqlOptions {
  return given as SqlOptions;
}

/**
 * The path in a `sqlite:` URL, relative to the working directory: `sqlite:./locks.db`, `sqlite:/var/lib/locks.db`,
 * `sqlite:///var/lib/locks.db`.
 *
 * @throws ConfigError where the URL names no file
 */
export function sqlitePath(url: string): string {
  const path = decode(url.replace(/^sqlite:(\/\/(?=\/|$))?/, '').replace(/[?#].*$/, ''));
  if (path === '') throw new ConfigError('sqlite: names no file: write sqlite:./locks.db');
  if (path.startsWith(':memory:')) {
    throw new ConfigError('a SQLite database in memory serves one process alone: use memory: instead');
  }
  return path;
}

/**
 * The server in a URL as messages show it: no user, no password, no parameters.
 *
 * @throws ConfigError where it is no URL
 */
export function serverIn(url: string, product: string): string {
  try {
    const { hostname, port, pathname } = new URL(url);
    return `${product} at ${hostname === '' ? 'localhost' : hostname}${port === '' ? '' : `:${port}`}${pathname}`;
  } catch {
    // The URL itself may hold a password, and the parser's error holds the URL.
    throw new ConfigError(`the ${product} URL cannot be read; percent-encode user and password`);
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new ConfigError(`the path ${JSON.stringify(text)} is not percent-encoded properly`, { cause });
  }
}
