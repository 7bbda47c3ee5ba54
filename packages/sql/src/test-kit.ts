import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type ServerHandle,
  skipped,
  startMariaDb,
  startMySql,
  startPgBouncer,
  startPostgres,
} from '@holdfast/testbed';

/** A database for tests, however it came to be. */
export interface TestDatabase {
  readonly url: string;
  readonly server: ServerHandle | undefined;
  stop(): Promise<void>;
}

/** The databases that every test of this package runs on. MySQL can only be had from Docker or the environment. */
export const DATABASES: readonly { readonly name: string; start(): Promise<TestDatabase> }[] = [
  { name: 'sqlite', start: startSqlite },
  { name: 'postgres', start: async () => started(await startPostgres({ own: true })) },
  { name: 'mariadb', start: async () => started(await startMariaDb({ own: true })) },
  ...(skipped('mysql') || !mysqlCanBeHad()
    ? []
    : [{ name: 'mysql', start: async () => started(await startMySql({ own: true })) }]),
];

/** PostgreSQL behind PgBouncer in transaction mode. */
export async function startPooledPostgres(): Promise<TestDatabase & { readonly server: ServerHandle }> {
  const postgres = await startPostgres({ own: true });
  const pooler = await startPgBouncer({ postgres, own: true });
  return {
    url: pooler.url,
    server: pooler,
    async stop() {
      await pooler.stop();
      await postgres.stop();
    },
  };
}

/** A file in a folder of its own. */
export async function startSqlite(): Promise<TestDatabase> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-sqlite-'));
  return {
    url: `sqlite:${join(folder, 'locks.db')}`,
    server: undefined,
    stop: async () => rmSync(folder, { recursive: true }),
  };
}

export function started(server: ServerHandle): TestDatabase & { readonly server: ServerHandle } {
  return { url: server.url, server, stop: () => server.stop() };
}

function mysqlCanBeHad(): boolean {
  return process.env.HOLDFAST_TEST_MYSQL_URL !== undefined;
}
