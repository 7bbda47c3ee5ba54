import { createLocks } from '@holdfast/core';
import { expect, it, onTestFinished } from 'vitest';
import type { MysqlConnection } from './dialect/mysql.js';
import { createBackend, sqlBackend } from './module.js';
import { DATABASES, knexFor, tenant } from './test-kit.js';

const [mariadb] = DATABASES.filter(({ name }) => name === 'mariadb');

it('of many released at once, one that was broken is not taken for one that somebody has taken anew', async () => {
  const database = await mariadb?.start();
  if (database === undefined) throw new Error('no MariaDB');
  onTestFinished(() => database.stop());
  const prefix = tenant();
  const other = await createLocks(createBackend({ url: database.url, prefix }));
  onTestFinished(() => other.close());
  let freed = 0;
  const knex = knexFor(database.url, {
    afterCreate: (connection: MysqlConnection, done: (error: Error | null, connection: unknown) => void) => {
      const query = connection.query.bind(connection);
      // As soon as many are free, somebody takes one of them, before it is asked which they were.
      connection.query = (sql, values, callback) =>
        query(sql, values, (error, result) => {
          if (!/^UPDATE .* SET owner = NULL/.test(sql)) return callback(error, result);
          freed++;
          other
            .lock('taken anew')
            .tryAcquire()
            .then(
              () => callback(error, result),
              (failure: Error) => callback(failure),
            );
        });
      done(null, connection);
    },
  });
  onTestFinished(() => knex.destroy());
  const locks = await createLocks(sqlBackend({ knex, prefix }));
  onTestFinished(() => locks.close());
  // The first two go alone.
  const names = ['first', 'second', 'broken', 'taken anew', 'last'];
  const holds = await Promise.all(names.map((name) => locks.lock(name).acquire()));
  expect(await other.forceRelease('broken')).toBe(true);
  const released = await Promise.all(holds.map((hold) => hold.release()));
  expect([released, freed]).toEqual([[true, true, false, true, true], 1]);
  expect(await other.inspect('taken anew')).toMatchObject({ held: true });
});
