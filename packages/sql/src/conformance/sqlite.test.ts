import { describeConformance } from '@holdfast/conformance';
import { afterAll, beforeAll } from 'vitest';
import { createBackend } from '../module.js';
import { startSqlite, type TestDatabase } from '../test-kit.js';

let database: TestDatabase;

beforeAll(async () => {
  database = await startSqlite();
});

afterAll(() => database.stop());

describeConformance('sqlite', {
  create: ({ prefix }) => createBackend({ url: database.url, prefix }),
  child: () => ({ url: database.url }),
});
