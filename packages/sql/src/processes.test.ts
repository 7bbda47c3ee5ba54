import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLocks, type Locks } from '@holdfast/core';
import { fakeClock, startWorker, type Worker, type WorkerOptions } from '@holdfast/testbed';
import Database from 'libsql';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { createBackend } from './module.js';
import { sqlitePath } from './options.js';
import { DATABASES, startSqlite, type TestDatabase, tenant } from './test-kit.js';

/** Bounds of time scale with this, as in the conformance suite. */
const FACTOR = Number(process.env.HOLDFAST_TIME_FACTOR ?? 2);

// Starting a process takes seconds on a machine that is busy with many.
vi.setConfig({ testTimeout: 120_000 });

const MODULE = new URL('./test-worker.mjs', import.meta.url);

let url: string;
let workers: Worker[];

beforeEach(() => {
  workers = [];
});
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.kill()));
});

function at(database: TestDatabase, parameters = ''): string {
  return `${database.url}?prefix=${tenant()}${parameters}`;
}

async function worker(options: WorkerOptions = {}, where = url): Promise<Worker> {
  const started = await startWorker(MODULE, options);
  workers.push(started);
  await started.call('open', { url: where });
  return started;
}

async function locksAt(where: string): Promise<Locks> {
  const [base = '', prefix = ''] = where.split('?prefix=');
  return createLocks(createBackend({ url: base, prefix }));
}

async function countTogether(processes: number, times: number): Promise<{ sum: number; stall: number }> {
  const file = join(tmpdir(), `holdfast-count-${tenant()}`);
  writeFileSync(file, '0');
  try {
    const crew = await Promise.all(Array.from({ length: processes }, () => worker()));
    const stalls = await Promise.all(
      crew.map((each) => each.call<number>('count', { name: 'job', file, times })),
    );
    return { sum: Number(readFileSync(file, 'utf8')), stall: Math.max(...stalls) };
  } finally {
    rmSync(file);
  }
}

describe.each(DATABASES)('processes on $name', ({ name, start }) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await start();
  });
  afterAll(() => database.stop());
  beforeEach(() => {
    url = at(database);
  });

  it('loses no update between processes', async () => {
    expect((await countTogether(4, 25)).sum).toBe(100);
  });

  it('sql-stuck-after-kill: a killed holder is followed when its ttl ends, and the row shows who held', async () => {
    const [holder, waiter] = [await worker(), await worker()];
    const { owner } = await holder.call<{ owner: string }>('acquire', { name: 'job', ttl: 2000 });
    const waiting = waiter.call('acquire', { name: 'job' });
    const locks = await locksAt(url);
    await holder.kill();
    const killed = performance.now();
    const state = await locks.inspect('job');
    expect(state.owner).toBe(owner);
    expect(state.expiresIn).toBeLessThanOrEqual(2000);
    await waiting;
    expect(performance.now() - killed).toBeLessThan(2500 * FACTOR);
    await locks.close();
  });

  it('sql-clock-skew, sql-db-clock-heartbeat: clients whose clocks are wrong steal nothing', async () => {
    using behind = fakeClock(-5 * 60_000);
    using ahead = fakeClock(60 * 60_000);
    const [slow, fast, right] = [
      await worker({ clock: behind }),
      await worker({ clock: ahead }),
      await worker(),
    ];
    await slow.call('acquire', { name: 'job', ttl: 10_000 });
    expect(await fast.call('tryAcquire', { name: 'job' })).toBe(false);
    expect(await right.call('tryAcquire', { name: 'job' })).toBe(false);
    expect(await slow.call('isHeld')).toBe(true);
    await slow.call('release');
    expect(await fast.call('tryAcquire', { name: 'job', ttl: 10_000 })).toBe(true);
    expect(await slow.call('tryAcquire', { name: 'job' })).toBe(false);
  });

  it('sql-timezone: processes in different zones agree on the expiry', async () => {
    const zones = ['UTC', 'Asia/Tokyo', 'America/New_York'];
    const crew = await Promise.all(zones.map((TZ) => worker({ env: { TZ, PGTZ: TZ } })));
    for (const holder of crew) {
      await holder.call('acquire', { name: 'job', ttl: 1000, renew: false });
      const granted = performance.now();
      const others = crew.filter((each) => each !== holder);
      for (const other of others) expect(await other.call('tryAcquire', { name: 'job' })).toBe(false);
      const [next] = others;
      await next?.call('acquire', { name: 'job', wait: 10_000 });
      expect(performance.now() - granted).toBeGreaterThan(900);
      await next?.call('release');
    }
  });

  it('sql-table-create-race: many that start at once on an empty database all proceed', async () => {
    for (let round = 0; round < 2; round++) {
      const table = `race_${round}_${tenant().slice(2)}`;
      const where = at(database, `&table=${table}`);
      const crew = await Promise.all(Array.from({ length: 6 }, () => startWorker(MODULE)));
      workers.push(...crew);
      await Promise.all(crew.map((each) => each.call('open', { url: where })));
      await Promise.all(
        crew.map(async (each) => {
          await each.call('acquire', { name: 'job' });
          await each.call('release');
        }),
      );
      await Promise.all(crew.map((each) => each.kill()));
    }
  });

  it('sql-advisory-namespace: two prefixes, and two sets of tables, never meet', async () => {
    const wheres = [at(database), at(database), `${url}&table=other_tables`];
    const crew = await Promise.all(wheres.map((where) => worker({}, where)));
    for (const each of crew) expect(await each.call('tryAcquire', { name: 'job' })).toBe(true);
  });

  if (name === 'sqlite') {
    it('a wall clock that is set while a lock is held changes nothing', async () => {
      using clock = fakeClock(0);
      const [holder, other] = [await worker({ clock }), await worker({ clock })];
      await holder.call('acquire', { name: 'job', ttl: 20_000 });
      for (const offset of [60 * 60_000, -60 * 60_000]) {
        clock.set(offset);
        expect(await other.call('tryAcquire', { name: 'job' })).toBe(false);
        expect(await holder.call('isHeld')).toBe(true);
      }
      expect(await holder.call('release')).toBe(true);
      expect(await other.call('tryAcquire', { name: 'job' })).toBe(true);
    });
  }
});

describe.each([
  ['wal', 15],
  ['delete', 3],
])('sql-sqlite-busy: twenty processes on one file, journal mode %s', (mode, fewer) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await startSqlite();
  });
  afterAll(() => database.stop());

  it('count without a busy error, and without blocking their event loops', async () => {
    url = `${at(database)}&journal=${mode}`;
    // Fewer than the 200 of the case, which take a minute: HOLDFAST_BUSY_TIMES=200 runs it whole.
    const times = Number(process.env.HOLDFAST_BUSY_TIMES ?? fewer);
    const { sum, stall } = await countTogether(20, times);
    expect(sum).toBe(20 * times);
    // A driver that waits for the file would stand still for its whole busy timeout, some seconds.
    expect(stall).toBeLessThan(2000 * FACTOR);
    const file = new Database(sqlitePath(database.url));
    expect(file.prepare('PRAGMA journal_mode').get()).toMatchObject({ journal_mode: mode });
    file.close();
  });
});
