import { createLocks } from '@holdfast/core';
import { startPostgres } from '@holdfast/testbed';
import { expect, it } from 'vitest';
import { createBackend } from './module.js';
import { knexFor } from './test-kit.js';

const failure = (url: string): Promise<unknown> =>
  createLocks(createBackend({ url })).then(
    (locks) => locks.close(),
    (error: unknown) => error,
  );

it('a PostgreSQL without TLS is said to have none, where the URL asks for it', async () => {
  const server = await startPostgres({ own: true });
  expect(await failure(`${server.url}?sslmode=verify-full`)).toMatchObject({
    code: 'BACKEND_REFUSED',
    message: expect.stringContaining('does not speak TLS: remove sslmode from the URL'),
  });
  await server.stop();
});

it('a PostgreSQL that wants TLS is said to want it, where the URL does not ask for it', async () => {
  const server = await startPostgres({ own: true });
  const admin = knexFor(server.url);
  const { rows } = await admin.raw('SHOW hba_file');
  const rules = ['hostnossl all locker all reject', 'host all all all scram-sha-256'];
  await admin.raw(`COPY (SELECT unnest(ARRAY['${rules.join("', '")}'])) TO '${rows[0].hba_file}'`);
  await admin.destroy();
  await server.node.restart();
  expect(await failure(server.url.replace('//holdfast:', '//locker:'))).toMatchObject({
    code: 'BACKEND_REFUSED',
    message: expect.stringContaining('add sslmode=verify-full to the URL'),
  });
  await server.stop();
});
