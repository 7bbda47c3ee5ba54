import { describeConformance } from '@holdfast/conformance';
import { afterAll, beforeAll } from 'vitest';
import { createBackend } from '../module.js';
import { startPooledPostgres, type TestDatabase } from '../test-kit.js';

let database: TestDatabase;

beforeAll(async () => {
  database = await startPooledPostgres();
});

afterAll(() => database.stop());

describeConformance('postgres behind pgbouncer in transaction mode', {
  create: ({ prefix }) => createBackend({ url: database.url, prefix }),
  child: () => ({ url: database.url }),
});
