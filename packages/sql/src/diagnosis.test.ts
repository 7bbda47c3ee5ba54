import { createLocks, type Diagnosis } from '@holdfast/core';
import { fakeClock, type ServerHandle, startMariaDb, startPgBouncer, startPostgres } from '@holdfast/testbed';
import createKnex, { type Knex } from 'knex';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { KnexLike } from './knex.js';
import { createBackend, sqlBackend } from './module.js';
import { knexFor, startSqlite, tenant } from './test-kit.js';

vi.setConfig({ testTimeout: 60_000 });

/** What a fresh instance says, which has fresh sessions. */
async function said(
  by: { readonly url: string } | { readonly knex: KnexLike },
): Promise<readonly Diagnosis[]> {
  const common = { prefix: tenant(), migrate: false };
  const backend = 'url' in by ? createBackend({ ...by, ...common }) : sqlBackend({ ...by, ...common });
  const locks = await createLocks(backend);
  try {
    return await locks.diagnose();
  } finally {
    await locks.close();
  }
}

function levels(facts: readonly Diagnosis[]): Record<string, Diagnosis['level']> {
  return Object.fromEntries(facts.map(({ id, level }) => [id, level]));
}

describe('a diagnosis of PostgreSQL', () => {
  const clock = fakeClock();
  let server: ServerHandle;
  let knex: Knex;

  beforeAll(async () => {
    server = await startPostgres({ own: true, clock, config: { fsync: 'on', wal_level: 'replica' } });
    knex = knexFor(server.url, { min: 0, max: 1 });
    await (await createLocks(createBackend({ url: server.url }))).close();
  });
  afterAll(async () => {
    await knex.destroy();
    await server.stop();
    clock[Symbol.dispose]();
  });

  it('of a sound server finds nothing to say', async () => {
    const facts = await said(server);
    expect(levels(facts)).toEqual({
      'postgres-version': 'ok',
      'postgres-primary': 'ok',
      'postgres-pooler': 'ok',
      'postgres-durability': 'ok',
      'postgres-clock': 'ok',
    });
    expect(facts[0]?.finding).toMatch(/PostgreSQL \d+/);
  });

  it.each([
    ['synchronous_commit = off', 'postgres-durability', 'danger'],
    ['default_transaction_read_only = on', 'postgres-primary', 'danger'],
    ['default_transaction_isolation = serializable', 'postgres-isolation', 'info'],
  ])('notices %s', async (setting, id, level) => {
    await knex.raw(`ALTER ROLE holdfast SET ${setting}`);
    const facts = await said(server);
    await knex.raw('SET transaction_read_only = off');
    await knex.raw('ALTER ROLE holdfast RESET ALL');
    expect(levels(facts)).toMatchObject({ [id]: level });
  });

  it('notices a clock that is off', async () => {
    clock.set(60_000);
    const facts = await said(server);
    clock.set(0);
    expect(levels(facts)).toMatchObject({ 'postgres-clock': 'warning' });
    expect(facts.find(({ id }) => id === 'postgres-clock')?.finding).toContain('ahead of');
  });

  it('notices a pooler in transaction mode, and that one in session mode does no harm', async () => {
    await using strict = await startPgBouncer({ postgres: server, own: true });
    expect(levels(await said(strict))).toMatchObject({ 'postgres-pooler': 'info' });
    await using loose = await startPgBouncer({ postgres: server, own: true, poolMode: 'session' });
    const facts = await said(loose);
    expect(levels(facts)).toMatchObject({ 'postgres-pooler': 'ok' });
    expect(facts.find(({ id }) => id === 'postgres-pooler')?.finding).toContain('keeps sessions');
  });

  it('notices a replica', async () => {
    const { rows } = await knex.raw('SHOW data_directory');
    await knex.raw(`COPY (SELECT 1) TO '${rows[0].data_directory}/standby.signal'`);
    await server.node.restart();
    expect(levels(await said(server))).toMatchObject({ 'postgres-primary': 'danger' });
  });
});

it('a diagnosis of PostgreSQL notices that fsync is off', async () => {
  await using server = await startPostgres({ own: true });
  await (await createLocks(createBackend({ url: server.url }))).close();
  expect(levels(await said(server))).toMatchObject({ 'postgres-durability': 'warning' });
});

describe('a diagnosis of MariaDB', () => {
  const clock = fakeClock();
  let server: ServerHandle;
  let knex: Knex;

  beforeAll(async () => {
    const config = { innodb_flush_log_at_trx_commit: 1, log_bin: 'binlog', binlog_format: 'ROW' };
    server = await startMariaDb({ own: true, clock, config });
    knex = knexFor(server.url);
    await (await createLocks(createBackend({ url: server.url }))).close();
  });
  afterAll(async () => {
    await knex.destroy();
    await server.stop();
    clock[Symbol.dispose]();
  });

  it('of a sound server finds nothing to say', async () => {
    const facts = await said(server);
    expect(levels(facts)).toEqual({
      'mariadb-version': 'ok',
      'mariadb-primary': 'ok',
      'mariadb-durability': 'ok',
      'mariadb-clock': 'ok',
    });
    expect(facts[0]?.finding).toMatch(/MariaDB \d+/);
  });

  it.each([
    ['innodb_flush_log_at_trx_commit', 2, 1, 'mariadb-durability', 'warning'],
    ['innodb_flush_log_at_trx_commit', 0, 1, 'mariadb-durability', 'danger'],
    ['read_only', 1, 0, 'mariadb-primary', 'danger'],
    ['binlog_format', "'STATEMENT'", "'ROW'", 'mariadb-binlog', 'danger'],
  ])('notices %s = %s', async (name, value, sound, id, level) => {
    await knex.raw(`SET GLOBAL ${name} = ${value}`);
    const facts = await said(server);
    await knex.raw(`SET GLOBAL ${name} = ${sound}`);
    expect(levels(facts)).toMatchObject({ [id]: level });
  });

  it('notices a clock that is off, and the isolation of connections that were handed in', async () => {
    clock.set(-60_000);
    const facts = await said({ knex });
    clock.set(0);
    expect(levels(facts)).toMatchObject({ 'mariadb-clock': 'warning', 'mariadb-isolation': 'info' });
    expect(facts.find(({ id }) => id === 'mariadb-clock')?.finding).toContain('behind');
  });
});

describe('a diagnosis of SQLite', () => {
  it('of a file on this machine finds nothing to say', async () => {
    const { url, stop } = await startSqlite();
    await (await createLocks(createBackend({ url }))).close();
    const facts = await said({ url });
    expect(levels(facts)).toMatchObject({ 'sqlite-version': 'ok', 'sqlite-journal': 'ok' });
    expect(facts.map(({ id }) => id)).toEqual([
      'sqlite-version',
      'sqlite-journal',
      'sqlite-file',
      'sqlite-clock',
    ]);
    await stop();
  });

  it('notices a database in memory, behind a knex', async () => {
    const knex = createKnex({
      client: 'better-sqlite3',
      connection: { filename: ':memory:' },
      useNullAsDefault: true,
    });
    await (await createLocks(sqlBackend({ knex }))).close();
    expect(levels(await said({ knex }))).toMatchObject({
      'sqlite-file': 'danger',
      'sqlite-journal': 'danger',
    });
    await knex.destroy();
  });
});
