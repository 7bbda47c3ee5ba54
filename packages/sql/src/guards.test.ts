import type { Knex } from 'knex';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { fencedUpdate } from './fenced-update.js';
import { withRowLock } from './row-lock.js';
import { DATABASES, knexFor, type TestDatabase } from './test-kit.js';
import { updateVersioned } from './update-versioned.js';

describe.each(DATABASES)('on $name', ({ name, start }) => {
  let database: TestDatabase;
  let knex: Knex;

  beforeAll(async () => {
    database = await start();
    knex = knexFor(database.url);
  });
  afterAll(async () => {
    await knex.destroy();
    await database.stop();
  });
  beforeEach(async () => {
    await knex.schema.createTable('accounts', (table) => {
      table.integer('id').primary();
      table.integer('balance').notNullable();
      table.string('state').notNullable();
      table.bigInteger('fence');
      table.integer('version').notNullable();
    });
    await knex('accounts').insert([
      { id: 1, balance: 10, state: 'new', fence: null, version: 1 },
      { id: 2, balance: 20, state: 'new', fence: null, version: 1 },
    ]);
  });
  afterEach(() => knex.schema.dropTable('accounts'));

  const balance = async (id: number): Promise<number> =>
    (await knex('accounts').where({ id }).first()).balance;

  describe('fencedUpdate', () => {
    const write = (token: bigint, amount: number, id = 1) =>
      fencedUpdate(knex, { table: 'accounts', where: { id }, token, set: { balance: amount } });

    it('writes for the newest holder, again and again, and for later ones', async () => {
      expect(await write(5n, 11)).toBe(1);
      expect(await write(5n, 12)).toBe(1);
      expect(await write(7n, 13)).toBe(1);
      expect(await balance(1)).toBe(13);
      expect(await balance(2)).toBe(20);
    });

    it('refuses an older holder, and says which token was seen', async () => {
      await write(7n, 13);
      await expect(write(6n, 99)).rejects.toMatchObject({ code: 'STALE_TOKEN', token: 6n, newest: 7n });
      expect(await balance(1)).toBe(13);
    });

    it('compares all 64 bits', async () => {
      const token = 2n ** 60n + 1n;
      expect(await write(token, 11)).toBe(1);
      await expect(write(token - 1n, 99)).rejects.toMatchObject({ code: 'STALE_TOKEN', newest: token });
      expect(await write(token, 12)).toBe(1);
    });

    it('writes the same again, where the row is so already', async () => {
      await write(5n, 11);
      expect(await write(5n, 11)).toBe(1);
    });

    it('writes nothing where there is no such row', async () => {
      expect(await write(5n, 11, 404)).toBe(0);
    });

    it('takes part in a transaction', async () => {
      await knex
        .transaction(async (trx) => {
          await fencedUpdate(trx, { table: 'accounts', where: { id: 1 }, token: 5n, set: { balance: 99 } });
          throw new Error('undone');
        })
        .catch(() => undefined);
      expect(await balance(1)).toBe(10);
    });

    it('takes the column that it is told', async () => {
      const update = { table: 'accounts', where: { id: 1 }, fenceColumn: 'version', set: { balance: 30 } };
      expect(await fencedUpdate(knex, { ...update, token: 3n })).toBe(1);
      await expect(fencedUpdate(knex, { ...update, token: 2n })).rejects.toMatchObject({ newest: 3n });
    });
  });

  describe('updateVersioned', () => {
    const save = (version: number, amount: number) =>
      updateVersioned(knex, { table: 'accounts', where: { id: 1 }, version, set: { balance: amount } });

    it('writes what was read unchanged, once', async () => {
      expect(await save(1, 11)).toBe(true);
      expect(await save(1, 12)).toBe(false);
      expect(await save(2, 13)).toBe(true);
      expect(await knex('accounts').where({ id: 1 }).first()).toMatchObject({ balance: 13, version: 3 });
    });

    it('lets one of many writers win', async () => {
      const outcomes = await Promise.all(Array.from({ length: 5 }, (_, index) => save(1, index)));
      expect(outcomes.filter(Boolean)).toHaveLength(1);
    });
  });

  describe('withRowLock', () => {
    it('gives the row and the value, and commits', async () => {
      const done = await withRowLock(knex, { table: 'accounts', where: { id: 1 } }, async (row, trx) => {
        await trx('accounts')
          .where({ id: 1 })
          .update({ balance: Number(row.balance) + 1 });
        return 'done';
      });
      expect(done).toEqual({ locked: true, value: 'done' });
      expect(await balance(1)).toBe(11);
    });

    it('loses no update', async () => {
      const add = () =>
        withRowLock(knex, { table: 'accounts', where: { id: 1 } }, async (row, trx) => {
          await trx('accounts')
            .where({ id: 1 })
            .update({ balance: Number(row.balance) + 1 });
        });
      await Promise.all(Array.from({ length: 10 }, add));
      expect(await balance(1)).toBe(20);
    });

    it('says when there is no such row', async () => {
      const done = await withRowLock(knex, { table: 'accounts', where: { id: 404 } }, async () => 'never');
      expect(done).toEqual({ locked: false });
    });

    it("rolls back and rejects with the work's own error", async () => {
      const work = withRowLock(knex, { table: 'accounts', where: { id: 1 } }, async (_, trx) => {
        await trx('accounts').where({ id: 1 }).update({ balance: 99 });
        throw new Error('mine');
      });
      await expect(work).rejects.toThrow('mine');
      expect(await balance(1)).toBe(10);
    });
  });

  // SQLite has one lock for all rows, and knex one connection for it: nobody else can be in a transaction.
  if (name === 'sqlite') return;

  describe('withRowLock beside another', () => {
    const beside = (mode: 'nowait' | 'skipLocked', where: object) =>
      withRowLock(knex, { table: 'accounts', where: { id: 1 } }, () =>
        withRowLock(knex, { table: 'accounts', where: { ...where }, mode }, async ({ id }) => Number(id)),
      );

    it('comes back at once with nowait', async () => {
      expect(await beside('nowait', { id: 1 })).toEqual({ locked: true, value: { locked: false } });
    });

    it('takes another row with skipLocked, and says when none is left', async () => {
      expect(await beside('skipLocked', { state: 'new' })).toEqual({
        locked: true,
        value: { locked: true, value: 2 },
      });
      expect(await beside('skipLocked', { id: 1 })).toEqual({ locked: true, value: { locked: false } });
    });
  });
});
