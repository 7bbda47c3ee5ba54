import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import type { ServerClock } from '../processes/clock.js';
import { fromEnvironment } from './environment.js';
import type { ServerHandle, StartOptions } from './handle.js';
import { findProgram } from './install.js';
import { claimPort } from './ports.js';
import { startGroup } from './provide.js';
import type { ProcessSpec } from './spec.js';
import { as, copyTemplate, run } from './template.js';

export interface PostgresOptions extends StartOptions {
  /** Settings of postgresql.conf, such as `{ idle_in_transaction_session_timeout: 500 }`. */
  readonly config?: Readonly<Record<string, string | number>>;
  /** A wall clock that can be set (local binaries only). */
  readonly clock?: ServerClock;
}

/** Database and superuser `holdfast`, password `holdfast`. URL `postgres://holdfast:holdfast@127.0.0.1:5432/holdfast`. */
export async function startPostgres(options: PostgresOptions = {}): Promise<ServerHandle> {
  const foreign = fromEnvironment('postgres', options);
  if (foreign !== undefined) return foreign;
  const port = await claimPort();
  const url = `postgres://holdfast:holdfast@127.0.0.1:${port.number}/holdfast`;
  return startGroup({
    server: 'postgres',
    url,
    specs: [postgresProcess(port.number, url, options)],
    where: options.clock === undefined ? 'anywhere' : 'local',
    release: () => port.release(),
  });
}

function postgresProcess(port: number, url: string, options: PostgresOptions): ProcessSpec {
  const settings = (bind: string, sockets: string): string[] =>
    Object.entries({
      listen_addresses: bind,
      port,
      unix_socket_directories: sockets,
      max_connections: 300,
      shared_buffers: '32MB',
      // A killed server loses nothing by these: they only count when the machine itself goes down.
      fsync: 'off',
      full_page_writes: 'off',
      ...options.config,
    }).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  return {
    server: 'postgres',
    name: 'postgres',
    port,
    url,
    command: ({ home, bind }) => ['postgres', '-D', `${home}/data`, ...settings(bind, '')],
    ...(options.clock !== undefined && { env: options.clock.env }),
    ready: () => askPostgres(url),
    // SIGTERM would wait until every client has left.
    stopSignal: 'SIGINT',
    local: {
      user: 'postgres',
      async prepare(home) {
        const initdb = findProgram('initdb');
        const { stdout: version } = await run(initdb, ['--version']);
        await copyTemplate(
          { name: 'postgres', key: version, user: 'postgres', make: initialise },
          join(home, 'data'),
        );
      },
    },
    docker: {
      entryPointArgs: ({ bind }) => ['postgres', ...settings(bind, '/var/run/postgresql')],
      env: { POSTGRES_USER: 'holdfast', POSTGRES_PASSWORD: 'holdfast', POSTGRES_DB: 'holdfast' },
    },
  };
}

async function initialise(folder: string): Promise<void> {
  const passwordFile = `${folder}.password`;
  await writeFile(passwordFile, 'holdfast\n', { mode: 0o644 });
  const how = ['-U', 'holdfast', '--auth=scram-sha-256', `--pwfile=${passwordFile}`];
  await run(
    findProgram('initdb'),
    ['-D', folder, ...how, '--no-sync', '-E', 'UTF8', '--locale=C'],
    as('postgres'),
  );
  const single = run(findProgram('postgres'), ['--single', '-F', '-D', folder, 'postgres'], as('postgres'));
  single.child.stdin?.end('CREATE DATABASE holdfast;\n');
  await single;
}

/** Rejects unless the server behind the URL answers a query. */
export async function askPostgres(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2000, query_timeout: 2000 });
  // Every failure also rejects what waits for it.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('SELECT 1');
  } finally {
    await client.end().catch(() => undefined);
  }
}
