import { join } from 'node:path';
import { createConnection } from 'mysql2/promise';
import type { ServerClock } from '../processes/clock.js';
import { fromEnvironment } from './environment.js';
import type { ServerHandle, StartOptions } from './handle.js';
import { findProgram } from './install.js';
import { accountOf } from './local.js';
import { claimPort } from './ports.js';
import { startGroup } from './provide.js';
import type { ProcessSpec } from './spec.js';
import { as, copyTemplate, run } from './template.js';

export interface MySqlOptions extends StartOptions {
  /** Server variables, such as `{ wait_timeout: 2 }`. */
  readonly config?: Readonly<Record<string, string | number>>;
  /** A wall clock that can be set (MariaDB from local binaries only). */
  readonly clock?: ServerClock;
}

/** Database and user `holdfast` (all privileges), password `holdfast`. URL `mariadb://holdfast:holdfast@…/holdfast`. */
export function startMariaDb(options: MySqlOptions = {}): Promise<ServerHandle> {
  return start('mariadb', options);
}

/** As MariaDB, URL `mysql://…`; from Docker or `HOLDFAST_TEST_MYSQL_URL` only. */
export function startMySql(options: MySqlOptions = {}): Promise<ServerHandle> {
  return start('mysql', options);
}

async function start(server: 'mariadb' | 'mysql', options: MySqlOptions): Promise<ServerHandle> {
  const foreign = fromEnvironment(server, options);
  if (foreign !== undefined) return foreign;
  const port = await claimPort();
  const url = `${server}://holdfast:holdfast@127.0.0.1:${port.number}/holdfast`;
  return startGroup({
    server,
    url,
    specs: [
      server === 'mariadb'
        ? mariaDbProcess(port.number, url, options)
        : mySqlProcess(port.number, url, options),
    ],
    where: options.clock === undefined ? 'anywhere' : 'local',
    release: () => port.release(),
  });
}

function mariaDbProcess(port: number, url: string, options: MySqlOptions): ProcessSpec {
  return {
    server: 'mariadb',
    name: 'mariadb',
    port,
    url,
    files: () => ({ 'init.sql': ACCOUNT }),
    command: ({ home, bind }) => [
      'mariadbd',
      '--no-defaults',
      `--datadir=${home}/data`,
      `--socket=${home}/socket`,
      `--pid-file=${home}/pid`,
      // It runs as a user of its own, who may not be allowed to write to our temporary folder.
      `--tmpdir=${home}`,
      `--init-file=${home}/init.sql`,
      ...(accountOf('mysql') === undefined ? [] : ['--user=mysql']),
      '--performance-schema=OFF',
      ...settings(port, bind, options),
    ],
    ...(options.clock !== undefined && { env: options.clock.env }),
    ready: () => askMySql(url),
    local: {
      user: 'mysql',
      async prepare(home) {
        const { stdout: version } = await run(findProgram('mariadbd'), ['--no-defaults', '--version']);
        await copyTemplate(
          { name: 'mariadb', key: version, user: 'mysql', make: initialise },
          join(home, 'data'),
        );
      },
    },
    docker: {
      entryPointArgs: ({ bind }) => ['mariadbd', ...settings(port, bind, options)],
      env: imageAccount('MARIADB'),
      files: { '/docker-entrypoint-initdb.d/account.sql': ACCOUNT },
    },
  };
}

function mySqlProcess(port: number, url: string, options: MySqlOptions): ProcessSpec {
  return {
    server: 'mysql',
    name: 'mysql',
    port,
    url,
    command: ({ bind }) => ['mysqld', ...settings(port, bind, options)],
    ready: () => askMySql(url),
    docker: {
      entryPointArgs: ({ bind }) => ['mysqld', ...settings(port, bind, options)],
      env: imageAccount('MYSQL'),
      files: { '/docker-entrypoint-initdb.d/account.sql': ACCOUNT },
    },
  };
}

const ACCOUNT = [
  'CREATE DATABASE IF NOT EXISTS holdfast;',
  "CREATE USER IF NOT EXISTS holdfast@'%' IDENTIFIED BY 'holdfast';",
  "GRANT ALL PRIVILEGES ON *.* TO holdfast@'%' WITH GRANT OPTION;",
  '',
].join('\n');

function settings(port: number, bind: string, options: MySqlOptions): string[] {
  return Object.entries({
    port,
    bind_address: bind,
    skip_name_resolve: 1,
    max_connections: 500,
    innodb_buffer_pool_size: 33_554_432,
    // Written at each commit, synced each second: a killed server loses nothing by it.
    innodb_flush_log_at_trx_commit: 2,
    ...options.config,
  }).map(([name, value]) => `--${name.replaceAll('_', '-')}=${value}`);
}

/** What the official images make an account of. Killing connections of others takes more: see `ACCOUNT`. */
function imageAccount(prefix: 'MARIADB' | 'MYSQL'): Readonly<Record<string, string>> {
  return {
    [`${prefix}_ROOT_PASSWORD`]: 'holdfast',
    [`${prefix}_DATABASE`]: 'holdfast',
    [`${prefix}_USER`]: 'holdfast',
    [`${prefix}_PASSWORD`]: 'holdfast',
  };
}

async function initialise(folder: string): Promise<void> {
  const how = ['--auth-root-authentication-method=normal', '--skip-test-db', '--skip-name-resolve'];
  const small = ['--innodb-log-file-size=4M', ...(accountOf('mysql') === undefined ? [] : ['--user=mysql'])];
  const install = findProgram('mariadb-install-db');
  await run(install, ['--no-defaults', `--datadir=${folder}`, ...how, ...small], as('mysql'));
}

/** Rejects unless the server behind the URL answers a query. */
export async function askMySql(url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const connection = await createConnection({
    host: hostname,
    port: Number(port),
    user: 'holdfast',
    password: 'holdfast',
    database: 'holdfast',
    connectTimeout: 2000,
  });
  try {
    await connection.query('SELECT 1');
  } finally {
    connection.destroy();
  }
}
