import { createLocks, type Locks } from '@holdfast/core';
import { type ServerHandle, startMariaDb, startPostgres } from '@holdfast/testbed';
import type { Knex } from 'knex';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrate } from './migrate.js';
import { createBackend } from './module.js';
import { knexFor, tenant } from './test-kit.js';

/** The grants of docs/backends/sql.md. */
const GRANTS = {
  postgres: [
    "CREATE ROLE locker LOGIN PASSWORD 'locker'",
    'REVOKE CREATE ON SCHEMA public FROM PUBLIC',
    'GRANT USAGE ON SCHEMA public TO locker',
    'GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast_locks, holdfast_waiters TO locker',
    'GRANT SELECT ON holdfast_schema TO locker',
  ],
  mariadb: [
    "CREATE USER locker IDENTIFIED BY 'locker'",
    'GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast.holdfast_locks TO locker',
    'GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast.holdfast_waiters TO locker',
    'GRANT SELECT ON holdfast.holdfast_schema TO locker',
  ],
};

describe.each([
  { name: 'postgres' as const, start: startPostgres },
  { name: 'mariadb' as const, start: startMariaDb },
])('a user of $name who may do no more than it must', ({ name, start }) => {
  let server: ServerHandle;
  let admin: Knex;
  let url: string;

  beforeAll(async () => {
    server = await start({ own: true });
    admin = knexFor(server.url);
    await migrate({ url: server.url });
    for (const grant of GRANTS[name]) await admin.raw(grant);
    url = Object.assign(new URL(server.url), { username: 'locker', password: 'locker' }).href;
  });
  afterAll(async () => {
    await admin.destroy();
    await server.stop();
  });

  const open = (prefix: string, options: object = {}): Promise<Locks> =>
    createLocks(createBackend({ url, prefix, ...options }));

  it('takes, waits, is woken, renews, lists, forces and sweeps', async () => {
    const prefix = tenant();
    const [a, b] = [await open(prefix), await open(prefix, { retention: 0, sweepEvery: 20 })];
    const hold = await a.lock('job').acquire();
    await hold.extend('1m');
    const waiting = b.lock('job').acquire();
    for (let queued = 0; queued === 0; ) queued = (await a.inspect('job')).waiters.length;
    await hold.release();
    await waiting;
    const names: string[] = [];
    for await (const state of a.list()) names.push(state.name);
    expect(names).toEqual(['job']);
    expect(await a.forceRelease('job')).toBe(true);
    const rows = async (): Promise<number> => (await admin('holdfast_locks').where({ prefix })).length;
    while ((await rows()) > 0) await new Promise((resolve) => setTimeout(resolve, 20));
    expect((await a.diagnose()).length).toBeGreaterThan(3);
    await Promise.all([a.close(), b.close()]);
  });

  it('is told what is missing where the tables are not there and it may not make them', async () => {
    await expect(open(tenant(), { table: 'none' })).rejects.toMatchObject({
      code: 'BACKEND_REFUSED',
      message: expect.stringContaining('holdfast migrate'),
    });
  });

  it('is told what is missing where it may only read', async () => {
    await admin.raw(`REVOKE INSERT ON holdfast_locks FROM locker`);
    const locks = await open(tenant());
    await expect(locks.lock('job').acquire({ wait: 5000 })).rejects.toMatchObject({
      code: 'BACKEND_REFUSED',
      message: expect.stringContaining('needs SELECT, INSERT, UPDATE and DELETE'),
    });
    await locks.close();
    await admin.raw(`GRANT INSERT ON holdfast_locks TO locker`);
  });
});
