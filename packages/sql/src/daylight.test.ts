import { createLocks, type Locks } from '@holdfast/core';
import {
  fakeClock,
  type ServerClock,
  type ServerHandle,
  startMariaDb,
  startPostgres,
} from '@holdfast/testbed';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { createBackend } from './module.js';
import { knexFor, tenant } from './test-kit.js';

vi.setConfig({ testTimeout: 60_000 });

const ZONE = 'Europe/Berlin';

/** The server lives in Berlin, by a clock that the test sets: only how far it has gone counts, not how fast. */
function inBerlin(clock: ServerClock): ServerClock {
  return { ...clock, env: { ...clock.env, TZ: ZONE } };
}

describe.each([
  { name: 'postgres', start: startPostgres, config: { timezone: ZONE } },
  { name: 'mariadb', start: startMariaDb, config: {} },
])('sql-dst: $name in a zone with daylight saving', ({ name, start, config }) => {
  const clock = fakeClock();
  let server: ServerHandle;
  let locks: Locks;

  beforeAll(async () => {
    server = await start({ own: true, clock: inBerlin(clock), config });
  });
  afterAll(async () => {
    await server.stop();
    clock[Symbol.dispose]();
  });
  beforeEach(async () => {
    clock.set(0);
    locks = await createLocks(createBackend({ url: server.url, prefix: tenant() }));
  });
  afterEach(() => locks.close());

  /** Sets the server's clock to a moment. */
  const goTo = (moment: number): void => clock.set(moment - Date.now());

  it.each([
    ['falls back', Date.UTC(2026, 9, 25, 1), -60],
    ['springs forward', Date.UTC(2027, 2, 28, 1), 60],
  ])('a hold over the hour at which the clock %s ends when its ttl does', async (_, change, minutes) => {
    goTo(change - 10_000);
    const before = await localMinutes();
    const hold = await locks.lock('job').acquire({ ttl: 30_000, renew: false });
    goTo(change + 5000);
    expect(Math.round((await localMinutes()) - before)).toBe(minutes);
    const state = await locks.inspect('job');
    expect(state.owner).toBe(hold.owner);
    expect(state.expiresIn).toBeGreaterThan(1000);
    // The clock has run on a little between the steps: an hour is what it must not be off by.
    expect(state.expiresIn).toBeLessThanOrEqual(30_000);
    expect(await locks.lock('job').tryAcquire()).toBeNull();
    goTo(change + 40_000);
    const next = await locks.lock('job').tryAcquire();
    expect(next?.fencingToken).toBeGreaterThan(hold.fencingToken);
  });

  /** The server's own local time of day, in minutes: what a column of local times would go by. */
  async function localMinutes(): Promise<number> {
    const knex = knexFor(server.url);
    try {
      const sql =
        name === 'postgres'
          ? 'SELECT extract(epoch from localtime)::int AS seconds'
          : 'SELECT TIME_TO_SEC(CURRENT_TIME()) AS seconds';
      const answer = await knex.raw(sql);
      return Number((name === 'postgres' ? answer.rows : answer[0])[0].seconds) / 60;
    } finally {
      await knex.destroy();
    }
  }
});
