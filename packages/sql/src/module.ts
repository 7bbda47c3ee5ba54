import { resolve } from 'node:path';
import { type BackendModule, type BackendOptions, ConfigError, type LockBackend } from '@holdfast/core';
import { SqlBackend, type SqlDatabase } from './backend.js';
import { type ConnectionPool, Connections } from './connections.js';
import { type MysqlConnection, MysqlDialect } from './dialect/mysql.js';
import { classifyMysql } from './dialect/mysql-errors.js';
import { knexMysql, ownMysql } from './dialect/mysql-pool.js';
import { type PostgresConnection, PostgresDialect } from './dialect/postgres.js';
import { classifyPostgres } from './dialect/postgres-errors.js';
import { knexPostgres, ownPostgres, type PostgresAccess } from './dialect/postgres-pool.js';
import { PostgresWakeups } from './dialect/postgres-wakeups.js';
import { type SqliteOptions, SqliteStore } from './dialect/sqlite.js';
import { SqliteFile, SqliteKnex } from './dialect/sqlite-connection.js';
import { familyOf, type KnexLike } from './knex.js';
import {
  DEFAULT_POOL,
  options,
  type SqlOptions,
  type SqlSettings,
  schemes,
  serverIn,
  settingsOf,
  sqlitePath,
  sqlOptionsOf,
} from './options.js';
import { tablesOf } from './schema.js';
import { ServerStore } from './server-store.js';

/** URL parameters that a driver documents and that stay in the URL. */
const DRIVER_PARAMETERS = {
  pg: [
    'sslmode',
    'sslcert',
    'sslkey',
    'sslrootcert',
    'sslnegotiation',
    'uselibpqcompat',
    'application_name',
    'fallback_application_name',
    'options',
    'client_encoding',
    'host',
    'ssl',
  ],
  mysql2: ['ssl', 'socketPath', 'charset', 'compress'],
} as const;

export const driverParameters: readonly string[] = [
  ...new Set([...DRIVER_PARAMETERS.pg, ...DRIVER_PARAMETERS.mysql2]),
];

/**
 * Locks in the database that a URL names.
 *
 * @throws ConfigError
 */
export function createBackend(given: BackendOptions): LockBackend {
  const { url } = given;
  if (url === undefined) throw new ConfigError(`sql: no url; write one of ${schemes.join(':, ')}:`);
  const settings = settingsOf(sqlOptionsOf(given));
  const max = typeof given.pool === 'number' ? given.pool : DEFAULT_POOL;
  if (max < 1) throw new ConfigError(`sql: pool is ${max}; allowed: 1 or more connections`);
  return new SqlBackend(databaseAt(url, settings, max), settings);
}

/**
 * Locks in the database of a knex that exists already, through its pool, outside its transactions. Its clients may be
 * `pg`, `mysql2`, `mysql` or `better-sqlite3`. `close()` leaves it open.
 *
 * @throws ConfigError
 */
export function sqlBackend({ knex, ...given }: SqlOptions & { readonly knex: KnexLike }): LockBackend {
  const settings = settingsOf(given);
  return new SqlBackend(databaseBehind(knex, settings), settings);
}

/** This package as `connect(config, { backends: [sql] })` takes it, for bundlers. */
export const sql: BackendModule = { schemes, options, driverParameters, createBackend };

/** The database that a URL names. */
export function databaseAt(url: string, settings: SqlSettings, max = DEFAULT_POOL): SqlDatabase {
  const scheme = url.slice(0, url.indexOf(':'));
  switch (scheme) {
    case 'sqlite':
      return sqliteFile(sqlitePath(url), settings);
    case 'postgres':
    case 'postgresql':
      assertHeeded(url, 'pg');
      return postgres(serverIn(url, 'PostgreSQL'), () => ownPostgres(url, max), settings);
    case 'mysql':
    case 'mariadb': {
      assertHeeded(url, 'mysql2');
      const server = serverIn(url, scheme === 'mysql' ? 'MySQL' : 'MariaDB');
      return mysql(server, (timeout) => ownMysql(url, { max, timeout }), settings);
    }
    default:
      throw new ConfigError(`sql: ${scheme}: is none of ${schemes.join(', ')}`);
  }
}

/** A driver passes over what it does not know: `sslmode` in a MySQL URL would be a connection without TLS. */
function assertHeeded(url: string, driver: keyof typeof DRIVER_PARAMETERS): void {
  const heeded = new Set<string>(DRIVER_PARAMETERS[driver]);
  const mark = url.indexOf('?');
  const given = new URLSearchParams(mark < 0 ? '' : url.slice(mark));
  const unheeded = driverParameters.find((name) => given.has(name) && !heeded.has(name));
  const tls = driver === 'pg' ? 'sslmode=verify-full' : 'ssl={}';
  if (unheeded !== undefined) {
    throw new ConfigError(
      `sql: the driver ${driver} does not heed the URL's ${unheeded}; it knows ${[...heeded].join(', ')}; TLS is ${tls}`,
    );
  }
  if (driver === 'mysql2' && /^(true|false|\d+)$/.test(given.get('ssl') ?? '')) {
    throw new ConfigError(
      "sql: the URL's ssl is for mysql2 an object, such as ssl={}, or the name of a profile",
    );
  }
}

function databaseBehind(knex: KnexLike, settings: SqlSettings): SqlDatabase {
  switch (familyOf(knex)) {
    case 'sqlite':
      return sqliteKnex(knex, settings);
    case 'postgres':
      return postgres("PostgreSQL behind the application's knex", async () => knexPostgres(knex), settings);
    case 'mysql':
      return mysql("MySQL behind the application's knex", async () => knexMysql(knex), settings);
  }
}

function sqliteFile(path: string, settings: SqlSettings): SqlDatabase {
  const file = resolve(path);
  return sqlite(
    `the SQLite file ${file}`,
    (prepare) => new SqliteFile(file, settings.journal, prepare),
    settings,
  );
}

function sqliteKnex(knex: KnexLike, settings: SqlSettings): SqlDatabase {
  const label = "SQLite behind the application's knex";
  return sqlite(label, (prepare) => new SqliteKnex(knex, prepare), settings);
}

function sqlite(
  label: string,
  connect: SqliteOptions['connect'],
  { prefix, table, migrate }: SqlSettings,
): SqlDatabase {
  const store = new SqliteStore({ prefix, tables: tablesOf(table), migrate, label, connect });
  return { product: 'sqlite', store, pacing: { shortest: 1, longest: 25 } };
}

function postgres(
  server: string,
  access: () => Promise<PostgresAccess>,
  { prefix, table, migrate }: SqlSettings,
): SqlDatabase {
  const store = new ServerStore<PostgresConnection>({
    prefix,
    migrate,
    async connect({ clock, commandTimeout: timeout, woken, disturbed, report }) {
      const { pool, listening } = await access();
      const connections: Connections<PostgresConnection> = new Connections({
        pool,
        classify: (error) => classifyPostgres(error, server),
        clock,
        timeout,
        label: server,
        unprepared: () => dialect.stopPreparing(),
      });
      const wakeups = new PostgresWakeups({
        source: listening,
        async notify(channel, payload) {
          await connections.use((c) =>
            c.query({ text: 'SELECT pg_notify($1, $2)', values: [channel, payload] }),
          );
        },
        clock,
        woken,
        changed: disturbed,
        report,
      });
      const inbox = (): string | null => (wakeups.active ? wakeups.channel : null);
      const dialect = new PostgresDialect(tablesOf(table), inbox);
      return { connections, dialect, wakeups };
    },
  });
  return { product: 'postgres', store, pacing: { shortest: 4, longest: 100 } };
}

function mysql(
  server: string,
  connect: (timeout: number) => Promise<ConnectionPool<MysqlConnection>>,
  { prefix, table, migrate }: SqlSettings,
): SqlDatabase {
  const store = new ServerStore<MysqlConnection>({
    prefix,
    migrate,
    async connect({ clock, commandTimeout: timeout }) {
      const dialect = new MysqlDialect(tablesOf(table));
      const connections = new Connections({
        pool: await connect(timeout),
        classify: (error) => classifyMysql(error, server),
        clock,
        timeout,
        label: server,
        unprepared: () => dialect.stopPreparing(),
      });
      return { connections, dialect };
    },
  });
  return { product: 'mysql', store, pacing: { shortest: 2, longest: 100 } };
}
