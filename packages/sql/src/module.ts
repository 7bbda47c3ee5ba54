import { resolve } from 'node:path';
import { type BackendModule, type BackendOptions, ConfigError, type LockBackend } from '@holdfast/core';
import { SqlBackend, type SqlDatabase } from './backend.js';
import { SqliteStore } from './dialect/sqlite.js';
import { SqliteFile } from './dialect/sqlite-connection.js';
import { options, type SqlSettings, schemes, settingsOf, sqlitePath, sqlOptionsOf } from './options.js';

/** URL parameters that the drivers document and that stay in the URL. */
export const driverParameters: readonly string[] = [];

/**
 * Locks in the database that a URL names.
 *
 * @throws ConfigError
 */
export function createBackend(given: BackendOptions): LockBackend {
  const { url } = given;
  if (url === undefined) throw new ConfigError(`sql: no url; write one of ${schemes.join(':, ')}:`);
  const settings = settingsOf(sqlOptionsOf(given));
  const scheme = url.slice(0, url.indexOf(':'));
  if (scheme === 'sqlite') return new SqlBackend('sqlite', sqliteFile(sqlitePath(url), settings), settings);
  throw new ConfigError(`sql: ${scheme}: is none of ${schemes.join(', ')}`);
}

/** This package as `connect(config, { backends: [sql] })` takes it, for bundlers. */
export const sql: BackendModule = { schemes, options, driverParameters, createBackend };

function sqliteFile(path: string, { prefix, table, migrate }: SqlSettings): SqlDatabase {
  const file = resolve(path);
  const store = new SqliteStore({
    prefix,
    table,
    migrate,
    label: `the SQLite file ${file}`,
    connect: (prepare) => new SqliteFile(file, prepare),
  });
  return { store, pacing: { shortest: 1, longest: 25 } };
}
