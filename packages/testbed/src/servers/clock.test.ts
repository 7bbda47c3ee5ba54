import { createConnection } from 'mysql2/promise';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { fakeClock } from '../processes/clock.js';
import { startMariaDb } from './mysql.js';
import { startPostgres } from './postgres.js';

const HOUR = 3_600;

describe('a server lives by the clock that it is given', { timeout: 90_000 }, () => {
  test('PostgreSQL', async () => {
    using clock = fakeClock();
    await using postgres = await startPostgres({ clock });
    const client = new pg.Client(postgres.url);
    await client.connect();
    const ahead = async () => {
      const { rows } = await client.query<{ now: string }>(
        'SELECT extract(epoch FROM clock_timestamp())::text AS now',
      );
      return Number(rows[0]?.now) - Date.now() / 1000;
    };
    clock.set(HOUR * 1000);
    expect(await ahead()).toBeGreaterThan(HOUR - 60);
    clock.set(-HOUR * 1000);
    expect(await ahead()).toBeLessThan(60 - HOUR);
    await client.end();
  });

  test('MariaDB', async () => {
    using clock = fakeClock();
    await using mariadb = await startMariaDb({ clock });
    const connection = await createConnection(mariadb.url.replace('mariadb:', 'mysql:'));
    const ahead = async () => {
      const [rows] = await connection.query('SELECT unix_timestamp(sysdate(6)) AS now');
      return Number((rows as { now: string }[])[0]?.now) - Date.now() / 1000;
    };
    clock.set(HOUR * 1000);
    expect(await ahead()).toBeGreaterThan(HOUR - 60);
    clock.set(-HOUR * 1000);
    expect(await ahead()).toBeLessThan(60 - HOUR);
    await connection.end();
  });
});
