import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Claim, type Grant, systemClock } from '@holdfast/core';
import {
  type ServerHandle,
  skipped,
  startMariaDb,
  startMySql,
  startPgBouncer,
  startPostgres,
} from '@holdfast/testbed';
import createKnex, { type Knex } from 'knex';
import Database from 'libsql';
import { Interest } from './interest.js';
import { databaseAt } from './module.js';
import { settingsOf, sqlitePath } from './options.js';
import type { LockStore, Refusal, StoreSession } from './store.js';

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

/** A knex as an application would have it. */
export function knexFor(url: string, pool: Knex.PoolConfig = {}): Knex {
  if (url.startsWith('sqlite:')) {
    return createKnex({
      client: 'better-sqlite3',
      connection: { filename: sqlitePath(url) },
      useNullAsDefault: true,
    });
  }
  if (url.startsWith('postgres')) return createKnex({ client: 'pg', connection: url, pool });
  return createKnex({ client: 'mysql2', connection: url.replace('mariadb:', 'mysql:'), pool });
}

/** A store by itself, opened in a tenant of its own. */
export async function openStore(
  url: string,
  prefix: string,
  session: Partial<StoreSession> = {},
): Promise<LockStore> {
  const { store } = databaseAt(url, settingsOf({ prefix }));
  await store.open({
    clock: systemClock,
    commandTimeout: 10_000,
    woken: () => undefined,
    disturbed: () => undefined,
    report: () => undefined,
    ...session,
  });
  return store;
}

export function tenant(): string {
  return `t-${randomBytes(6).toString('hex')}`;
}

/** A claim for `job`, by an owner who says who it is. */
export function claimOf(owner: string, claim: Partial<Claim> = {}): Claim {
  return { name: 'job', owner, ttl: 30_000, queue: true, renew: true, ...claim };
}

/** In an answer that is always wanted. */
export const always = new Interest();

export function isGrant(answer: Grant | Refusal): answer is Grant {
  return 'fencingToken' in answer;
}

/** The rows of the tables, changed by hand. */
export interface Rows {
  update(table: string, id: Buffer, changes: object): Promise<unknown>;
  delete(table: string, id: Buffer): Promise<unknown>;
  names(table: string, prefix: string): Promise<string[]>;
}

export async function withRows(url: string, work: (rows: Rows) => Promise<unknown>): Promise<void> {
  if (url.startsWith('sqlite:')) return withFile(sqlitePath(url), work);
  const knex = knexFor(url);
  try {
    await work({
      update: async (table, id, changes) => knex(table).where({ id }).update(changes),
      delete: async (table, id) => knex(table).where({ id }).delete(),
      names: async (table, prefix) =>
        (await knex(table).where({ prefix }).select('name')).map(({ name }) => String(name)),
    });
  } finally {
    await knex.destroy();
  }
}

/** With the driver that the locks use: two copies of SQLite in one process undo each other's file locks. */
async function withFile(path: string, work: (rows: Rows) => Promise<unknown>): Promise<void> {
  const database = new Database(path, { timeout: 5000 });
  try {
    await work({
      update: async (table, id, changes) => {
        const set = Object.entries(changes).map(([column, value]) => `${column} = ${value}`);
        database.prepare(`UPDATE ${table} SET ${set.join(', ')} WHERE id = @id`).run({ id });
      },
      delete: async (table, id) => database.prepare(`DELETE FROM ${table} WHERE id = @id`).run({ id }),
      names: async (table, prefix) =>
        (
          database.prepare(`SELECT name FROM ${table} WHERE prefix = @prefix`).all({ prefix }) as {
            name: string;
          }[]
        ).map(({ name }) => name),
    });
  } finally {
    database.close();
  }
}
