import { inspect } from 'node:util';
import { createLocks } from '@holdfast/core';
import createKnex from 'knex';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { knexMigrations, migrate } from './migrate.js';
import { sqlBackend } from './module.js';
import { DATABASES, knexFor, startSqlite, type TestDatabase, tenant } from './test-kit.js';

describe.each(DATABASES)('a knex that was handed in, on $name', ({ start }) => {
  let database: TestDatabase;

  beforeEach(async () => {
    database = await start();
  });
  afterEach(() => database.stop());

  it('serves locks, keeps working meanwhile, and stays open', async () => {
    const knex = knexFor(database.url);
    const [a, b] = [
      await createLocks(sqlBackend({ knex, prefix: 'one' })),
      await createLocks(sqlBackend({ knex, prefix: 'one' })),
    ];
    const hold = await a.lock('job').acquire({ metadata: 'wörk' });
    expect(await b.lock('job').tryAcquire()).toBeNull();
    expect(await b.inspect('job')).toMatchObject({ owner: hold.owner, metadata: 'wörk' });
    const waiting = b.lock('job').acquire();
    expect(await hold.release()).toBe(true);
    await (await waiting).release();
    await Promise.all([a.close(), b.close()]);
    expect(await knex('holdfast_locks').where({ prefix: 'one' }).count('* as n').first()).toBeDefined();
    await knex.destroy();
  });

  it('has its tables from a migration of its own, and the locks need no more', async () => {
    const knex = knexFor(database.url);
    const settings = { migrationSource: knexMigrations(), tableName: 'app_migrations' };
    await knex.migrate.latest(settings);
    await migrate({ knex });
    const locks = await createLocks(sqlBackend({ knex, prefix: tenant(), migrate: false }));
    await (await locks.lock('job').acquire()).release();
    await locks.close();
    await knex.migrate.rollback(settings);
    expect(await knex.schema.hasTable('holdfast_locks')).toBe(false);
    await migrate({ knex });
    expect(await knex.schema.hasTable('holdfast_locks')).toBe(true);
    await knex.destroy();
  });
});

it('a transaction that keeps the only connection of a SQLite knex is told so in time, and no ghost is left', async () => {
  const database = await startSqlite();
  const knex = knexFor(database.url);
  const locks = await createLocks(sqlBackend({ knex }), { commandTimeout: 500 });
  await knex.transaction(async (trx) => {
    await trx.raw('SELECT 1');
    const refused = await locks
      .lock('job')
      .acquire({ wait: 2000 })
      .catch((error: Error) => error);
    expect(refused).toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
    expect(inspect(refused)).toContain('does a transaction keep it');
  });
  // The attempt may have had the connection in the moment in which the transaction ended: it is undone behind the caller.
  expect((await locks.lock('job').acquire({ wait: 5000 })).isHeld()).toBe(true);
  await locks.close();
  const later = await createLocks(sqlBackend({ knex }));
  expect(await later.inspect('job')).toMatchObject({ held: false, waiters: [] });
  await later.close();
  await knex.destroy();
  await database.stop();
});

it('a knex that speaks to something else is refused, and what would do is named', () => {
  const knex = createKnex({ client: 'pg' });
  const other = { client: Object.create(knex.client, { driverName: { value: 'oracledb' } }) };
  expect(() => sqlBackend({ knex: other })).toThrowError(/oracledb.*better-sqlite3, pg, mysql, mysql2/);
});
