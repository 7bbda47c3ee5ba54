import { type Clock, systemClock } from '@holdfast/core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, it } from 'vitest';
import { CLOCK_RULE, RULES, SERVER_RULES, type Stage } from './rules.js';
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

  it('a client whose clock is an hour ahead steals nothing', async () => {
    const clock: Clock = {
      now: () => systemClock.now(),
      uptime: () => systemClock.uptime(),
      wall: () => systemClock.wall() + 3_600_000,
      setTimer: (delay, callback, options) => systemClock.setTimer(delay, callback, options),
    };
    await stage.b.close();
    await CLOCK_RULE({ ...stage, b: await openStore(stage.url, stage.prefix, { clock }) });
  });

  const rules = name === 'sqlite' ? RULES : { ...RULES, ...SERVER_RULES };
  for (const [rule, story] of Object.entries(rules)) it(rule, () => story(stage));
});
