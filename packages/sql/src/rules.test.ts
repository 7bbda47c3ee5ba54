import { afterAll, afterEach, beforeAll, beforeEach, describe, it } from 'vitest';
import { LATE_RULES, RULES, type Stage } from './rules.js';
import { DATABASES, openStore, type TestDatabase, tenant } from './test-kit.js';

describe.each(DATABASES)('on $name', ({ name, start }) => {
  let database: TestDatabase;
  let stage: Stage;

  beforeAll(async () => {
    database = await start();
  });
  afterAll(() => database.stop());

  beforeEach(async () => {
    const { url } = database;
    const prefix = tenant();
    stage = { url, prefix, a: await openStore(url, prefix), b: await openStore(url, prefix) };
  });
  afterEach(async () => {
    await stage.a.close();
    await stage.b.close();
  });

  const rules = name === 'sqlite' ? RULES : { ...RULES, ...LATE_RULES };
  for (const [rule, story] of Object.entries(rules)) it(rule, () => story(stage));
});
