import { createLocks, type Locks } from '@holdfast/core';
import { type FaultProxy, startProxy } from '@holdfast/testbed';
import type { Knex } from 'knex';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { keyOf } from './key.js';
import type { KnexLike } from './knex.js';
import { createBackend, sqlBackend } from './module.js';
import type { SqlOptions } from './options.js';
import { DATABASES, knexFor, startPooledPostgres, type TestDatabase, tenant } from './test-kit.js';

/** Bounds of time scale with this, as in the conformance suite. */
const FACTOR = Number(process.env.HOLDFAST_TIME_FACTOR ?? 2);

vi.setConfig({ testTimeout: 60_000 });

let prefix: string;
let opened: Locks[];

beforeEach(() => {
  prefix = tenant();
  opened = [];
});
afterEach(async () => {
  await Promise.all(opened.map((locks) => locks.close()));
});

async function locksAt(url: string, options: SqlOptions = {}, commandTimeout = 5000): Promise<Locks> {
  const locks = await createLocks(createBackend({ url, prefix, ...options }), { commandTimeout });
  opened.push(locks);
  return locks;
}

async function locksOn(knex: KnexLike): Promise<Locks> {
  const locks = await createLocks(sqlBackend({ knex, prefix }));
  opened.push(locks);
  return locks;
}

/** Resolves when it is so; the test's own timeout ends what never becomes so. */
async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** The statement that ends every other connection of this user. */
function killAll(name: string): string {
  return name === 'postgres'
    ? 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL'
    : 'KILL USER holdfast';
}

const SERVERS = DATABASES.filter(({ name }) => name !== 'sqlite');

describe.each(SERVERS)('on $name', ({ name, start }) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await start();
  });
  afterAll(() => database.stop());

  describe('through a wire that loses answers', () => {
    let proxy: FaultProxy;

    beforeAll(async () => {
      proxy = await startProxy({ target: database.url });
    });
    afterAll(() => proxy.stop());
    afterEach(() => proxy.heal());

    it('a crowd that is refused by a slow server is answered one after another, not all at the end', async () => {
      const direct = await locksAt(database.url);
      const slow = await locksAt(proxy.url, { pool: 2 } as SqlOptions, 60_000);
      await direct.lock('job').acquire();
      await slow.lock('warm').acquire();
      const delay = proxy.delay({ up: 10, down: 10 });
      const began = performance.now();
      const times = await Promise.all(
        Array.from({ length: 60 }, async () => {
          expect(await slow.lock('job').tryAcquire()).toBeNull();
          return performance.now() - began;
        }),
      );
      delay.heal();
      // Each is refused by two statements. Were the second ones to stand behind all first ones, half of the time would
      // have passed before the first answer, and a crowd that is large enough would never hear any.
      times.sort((x, y) => x - y);
      expect(times[10]).toBeLessThan((times.at(-1) as number) / 2);
    });

    it.each([0, 1, 2])(
      'answer %i of a release by force can be lost: one grant is broken, and one only',
      async (nth) => {
        const [direct, lossy] = [
          await locksAt(database.url),
          await locksAt(proxy.url, { pool: 1 } as SqlOptions),
        ];
        const held = await direct.lock('job').acquire();
        const queued = new Promise((resolve) => direct.on('waiting', resolve));
        const next = direct.lock('job').acquire();
        await queued;
        let requests = 0;
        proxy.dropAnswerTo(() => requests++ === nth);
        expect(await lossy.forceRelease('job')).toBe(true);
        expect([await held.verify(), await (await next).verify()]).toEqual([false, true]);
        await (await next).release();
      },
    );

    // An acquisition that waits its turn sends some six statements from its first attempt to its release.
    it.each([0, 1, 2, 3, 4, 5, 6])(
      'answer %i of an acquisition can be lost: it is had once, and nothing stays',
      async (nth) => {
        const [direct, lossy] = [
          await locksAt(database.url),
          await locksAt(proxy.url, { pool: 1 } as SqlOptions),
        ];
        const holder = await direct.lock('job').acquire();
        let requests = 0;
        proxy.dropAnswerTo(() => requests++ === nth);
        const waiting = lossy.lock('job').acquire({ wait: 20_000 });
        await until(async () => (await direct.inspect('job')).waiters.length === 1);
        await holder.release();
        const hold = await waiting;
        expect(hold.fencingToken).toBeGreaterThan(holder.fencingToken);
        expect(await hold.verify()).toBe(true);
        expect((await direct.inspect('job')).owner).toBe(hold.owner);
        await hold.release();
        await until(async () => {
          const { held, waiters } = await direct.inspect('job');
          return !held && waiters.length === 0;
        });
      },
    );

    it('a claim that was given up unanswered leaves no ghost, even where its request arrives later', async () => {
      const direct = await locksAt(database.url);
      const lossy = await locksAt(proxy.url, {}, 2000);
      await lossy
        .lock('warm')
        .acquire()
        .then((hold) => hold.release());
      const fault = proxy.holdRequest(() => true, { times: 20 });
      await expect(lossy.lock('job').acquire({ wait: 1000 })).rejects.toMatchObject({
        code: 'BACKEND_UNAVAILABLE',
      });
      fault.heal();
      await until(async () => !(await direct.inspect('job')).held);
      const hold = await direct.lock('job').acquire({ wait: 5000 * FACTOR });
      expect(hold.isHeld()).toBe(true);
    });

    it.each([
      ['before its statement arrives', () => proxy.blackHole()],
      [
        'in the middle of its statement',
        () => proxy.cutRequest(() => true, { times: 50, afterwards: 'mute' }),
      ],
      ['after its statement, before the answer', () => proxy.blackHole('down')],
    ])(
      'sql-ghost-row-lock: a holder cut off %s keeps nobody out for longer than its ttl',
      async (_, cutOff) => {
        const direct = await locksAt(database.url);
        const cut = await locksAt(proxy.url, {}, 1000);
        const hold = await cut.lock('job').acquire({ ttl: 2000 });
        cutOff();
        const failing = cut.lock('other').acquire({ wait: 1500 });
        await expect(failing).rejects.toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
        const next = await direct.lock('job').acquire({ wait: 5000 * FACTOR });
        expect(hold.isHeld()).toBe(false);
        expect(next.isHeld()).toBe(true);
        // The one that was asked for in vain is nobody's for longer than its ttl either, and it was not granted twice.
        await proxy.heal();
        const other = await direct.lock('other').acquire({ wait: 40_000 });
        expect(other.isHeld()).toBe(true);
      },
    );
  });

  it('sql-conn-killed: a hold survives its connections, and waiters are woken on new ones', async () => {
    const [a, b] = [await locksAt(database.url), await locksAt(database.url)];
    const knex = knexFor(database.url);
    const hold = await a.lock('job').acquire({ ttl: 5000 });
    const waiting = b.lock('job').acquire({ wait: 30_000 });
    await until(async () => (await a.inspect('job')).waiters.length === 1);
    // MariaDB ends the connection that asks as well.
    await knex.raw(killAll(name)).catch(() => undefined);
    await until(async () => hold.verify().catch(() => false));
    expect(hold.isHeld()).toBe(true);
    expect(await hold.release()).toBe(true);
    expect((await waiting).isHeld()).toBe(true);
    await knex.destroy();
  });

  it('sql-joins-outer-tx, sql-pg-tx-aborted: a transaction of the application is none of ours', async () => {
    const knex = knexFor(database.url);
    const [own, other] = [await locksOn(knex), await locksAt(database.url)];
    const held = await other.lock('held').acquire();
    await knex
      .transaction(async (trx) => {
        expect(await own.lock('held').tryAcquire()).toBeNull();
        const hold = await own.lock('job').acquire();
        expect(await other.lock('job').tryAcquire()).toBeNull();
        expect(await trx.raw('SELECT 1')).toBeDefined();
        expect(hold.isHeld()).toBe(true);
        throw new Error('rolled back');
      })
      .catch((error: Error) => expect(error.message).toBe('rolled back'));
    expect(await other.lock('job').tryAcquire()).toBeNull();
    await held.release();
    await own.close();
    expect(await knex.raw('SELECT 1')).toBeDefined();
    await knex.destroy();
  });

  it('sql-pool-starved: 200 waiters on a pool of 2 leave it to the holder', async () => {
    const knex = knexFor(database.url, { min: 0, max: 2 });
    const locks = await locksOn(knex);
    const hold = await locks.lock('job').acquire();
    const giveUp = new AbortController();
    const waiting = Array.from({ length: 200 }, () =>
      locks
        .lock('job')
        .acquire({ signal: giveUp.signal })
        .catch(() => undefined),
    );
    const ninthOfTen = async (): Promise<number> => {
      const times: number[] = [];
      for (let i = 0; i < 10; i++) {
        const sent = performance.now();
        await knex.raw('SELECT 1');
        times.push(performance.now() - sent);
      }
      return times.sort((x, y) => x - y)[8] as number;
    };
    // While they come, and when they all wait.
    expect(await ninthOfTen()).toBeLessThan(200 * FACTOR);
    await until(async () => (await locks.inspect('job')).waiters.length === 200);
    expect(await ninthOfTen()).toBeLessThan(200 * FACTOR);
    giveUp.abort(new Error('enough'));
    await Promise.all(waiting);
    await until(async () => (await locks.inspect('job')).waiters.length === 0);
    await hold.release();
    await locks.close();
    await knex.destroy();
  });

  it('sql-mysql-insert-deadlock: of many who take a new name at once, one has it', async () => {
    const instances = await Promise.all([1, 2, 3, 4].map(() => locksAt(database.url)));
    for (let round = 0; round < 10; round++) {
      const tries = Array.from({ length: 40 }, (_, index) =>
        (instances[index % 4] as Locks).lock(`new-${round}`).tryAcquire(),
      );
      const holds = (await Promise.all(tries)).filter((hold) => hold !== null);
      expect(holds).toHaveLength(1);
    }
  });

  it('sql-unlock-deadlock, sql-serialization: what fails in conflict is sent again, a release too', async () => {
    const knex = knexFor(database.url);
    const conflict = name === 'postgres' ? { code: '40P01' } : { errno: 1213 };
    const { faulty, strikes } = failing(knex, conflict);
    const locks = await locksOn(faulty);
    strikes.left = 2;
    const hold = await locks.lock('job').acquire();
    strikes.left = 2;
    await hold.extend();
    strikes.left = 2;
    expect(await hold.release()).toBe(true);
    expect(strikes.left).toBe(0);
    expect((await locks.inspect('job')).held).toBe(false);
    await locks.close();
    await knex.destroy();
  });

  it('sessions that are SERIALIZABLE: contenders through a pool that was handed in hear of no conflict', async () => {
    const serializable =
      name === 'postgres'
        ? 'SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE'
        : 'SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE';
    type Session = { query(sql: string, done: (error: Error | null) => void): void };
    const knex = knexFor(database.url, {
      min: 0,
      max: 10,
      afterCreate: (session: Session, done: (error: Error | null, session: Session) => void) =>
        session.query(serializable, (error) => done(error, session)),
    });
    const instances = await Promise.all([1, 2, 3].map(() => locksOn(knex)));
    let inside = 0;
    let most = 0;
    const tokens: bigint[] = [];
    await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        (instances[index % 3] as Locks).lock('job').run(
          async ({ fencingToken }) => {
            tokens.push(fencingToken);
            inside += 1;
            most = Math.max(most, inside);
            await new Promise((resolve) => setImmediate(resolve));
            inside -= 1;
          },
          { wait: 50_000 },
        ),
      ),
    );
    expect(most).toBe(1);
    expect(tokens).toEqual([...tokens].sort((x, y) => (x < y ? -1 : 1)));
    expect((await (instances[0] as Locks).inspect('job')).waiters).toEqual([]);
    await Promise.all(instances.map((locks) => locks.close()));
    await knex.destroy();
  });

  it('sql-mariadb-negative-wait, sql-fractional-wait: a wait is as long as it is said to be', async () => {
    const [a, b] = [await locksAt(database.url), await locksAt(database.url)];
    const hold = await a.lock('job').acquire();
    for (const wait of [200, 1200]) {
      const began = performance.now();
      await expect(b.lock('job').acquire({ wait })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
      expect(performance.now() - began).toBeGreaterThan(wait - 2);
      expect(performance.now() - began).toBeLessThan(wait + 500 * FACTOR);
    }
    const waiting = b.lock('job').acquire();
    await until(async () => (await a.inspect('job')).waiters.length === 1);
    await hold.release();
    expect((await waiting).isHeld()).toBe(true);
  });

  it('sql-advisory-namespace: two schemas, or two databases, of one server never meet', async () => {
    const knex = knexFor(database.url);
    const other = `other_${prefix.slice(2)}`;
    await knex.raw(`CREATE ${name === 'postgres' ? 'SCHEMA' : 'DATABASE'} ${other}`);
    await knex.destroy();
    const url = new URL(database.url);
    if (name === 'postgres') url.searchParams.set('options', `-c search_path=${other}`);
    else url.pathname = `/${other}`;
    const [here, there] = [await locksAt(database.url), await locksAt(url.href)];
    const hold = await here.lock('job').acquire();
    expect((await there.lock('job').tryAcquire())?.isHeld()).toBe(true);
    expect(await hold.verify()).toBe(true);
  });

  it('missing tables are refused with what to do, and made when asked to', async () => {
    const table = `later_${prefix.slice(2)}`;
    await expect(locksAt(database.url, { table, migrate: false })).rejects.toMatchObject({
      code: 'BACKEND_REFUSED',
      message: expect.stringContaining('holdfast migrate'),
    });
    await locksAt(database.url, { table });
    expect((await locksAt(database.url, { table, migrate: false })).backend.name).toBe(name);
  });

  it('wrong credentials and an unknown database are refused at once, without the password', async () => {
    const wrong = new URL(database.url);
    wrong.password = 'wrong-secret';
    const nowhere = new URL(database.url);
    nowhere.pathname = '/nowhere';
    for (const url of [wrong.href, nowhere.href]) {
      const error = await locksAt(url).then(
        () => undefined,
        (caught: Error) => caught,
      );
      expect(error).toMatchObject({ code: 'BACKEND_REFUSED', cause: expect.any(Error) });
      expect(error?.message).not.toContain('secret');
    }
  });

  it('a read-only server is refused once a new connection says the same', async () => {
    const knex = knexFor(database.url);
    const locks = await locksAt(database.url);
    const [off, on] =
      name === 'postgres'
        ? ['ALTER ROLE holdfast SET default_transaction_read_only = on', 'ALTER ROLE holdfast RESET ALL']
        : ['SET GLOBAL read_only = 1', 'SET GLOBAL read_only = 0'];
    const user = name === 'postgres' ? undefined : `ro_${prefix.slice(2)}`;
    if (user !== undefined) {
      await knex.raw(`CREATE USER ${user} IDENTIFIED BY 'ro'`);
      await knex.raw(`GRANT ALL ON holdfast.* TO ${user}`);
    }
    await knex.raw(off);
    const url = new URL(database.url);
    if (user !== undefined) Object.assign(url, { username: user, password: 'ro' });
    await expect(
      locksAt(url.href, { migrate: false }).then((late) => late.lock('job').acquire({ wait: 5000 })),
    ).rejects.toMatchObject({ code: 'BACKEND_REFUSED', message: expect.stringContaining('read-only') });
    await knex.raw(on);
    expect((await locks.lock('job').acquire()).isHeld()).toBe(true);
    await knex.destroy();
  });

  it('a thousand holds are renewed by a statement or two, not one each', async () => {
    const knex = knexFor(database.url);
    const { faulty, strikes } = failing(knex, {});
    const locks = await locksOn(faulty);
    const names = Array.from({ length: 1000 }, (_, index) => `job-${index}`);
    const holds = await Promise.all(
      names.map((each) => locks.lock(each).acquire({ ttl: 60_000, renew: false })),
    );
    const backend = sqlBackend({ knex: faulty, prefix });
    await backend.open();
    const before = strikes.statements;
    const renewals = await backend.renew(
      holds.map((hold) => ({
        claim: { name: hold.name, owner: hold.owner, ttl: 60_000, queue: true, renew: true },
        fencingToken: hold.fencingToken,
        ttl: 60_000,
      })),
    );
    expect(renewals.every(({ renewed }) => renewed === true)).toBe(true);
    expect(strikes.statements - before).toBeLessThanOrEqual(2);
    await backend.close();
    await locks.close();
    await knex.destroy();
  });

  it('who joins those of its own instance that wait asks for a place at once', async () => {
    const knex = knexFor(database.url);
    const { faulty, strikes } = failing(knex, {});
    const [holder, locks] = [await locksAt(database.url), await locksOn(faulty)];
    const hold = await holder.lock('job').acquire();
    const joining = async (): Promise<number> => {
      const before = strikes.takes;
      const announced = new Promise<void>((resolve) => {
        const off = locks.on('waiting', () => {
          off();
          resolve();
        });
      });
      waiting.push(locks.lock('job').run(() => undefined));
      await announced;
      return strikes.takes - before;
    };
    const waiting: Promise<void>[] = [];
    expect([await joining(), await joining()]).toEqual([2, 1]);
    await hold.release();
    await Promise.all(waiting);
    await locks.close();
    await knex.destroy();
  });

  it('a hand-over costs the same number of statements, however many wait', async () => {
    const cost = async (waiters: number): Promise<number> => {
      const knex = knexFor(database.url);
      const { faulty, strikes } = failing(knex, {});
      const locks = await locksOn(faulty);
      const hold = await locks.lock(`job-${waiters}`).acquire();
      let served = 0;
      const all = Array.from({ length: waiters }, () =>
        locks.lock(`job-${waiters}`).run(() => {
          served += 1;
        }),
      );
      await until(async () => (await locks.inspect(`job-${waiters}`)).waiters.length === waiters);
      const before = strikes.statements;
      await hold.release();
      await Promise.all(all);
      expect(served).toBe(waiters);
      const statements = strikes.statements - before;
      await locks.close();
      await knex.destroy();
      return statements / waiters;
    };
    const [few, many] = [await cost(10), await cost(100)];
    expect(many).toBeLessThan(few + 2);
    expect(many).toBeLessThan(8);
  });

  it('a row that was deleted by hand is a lost hold, and is not made again', async () => {
    const locks = await locksAt(database.url);
    const knex = knexFor(database.url);
    const hold = await locks.lock('job').acquire();
    await knex('holdfast_locks')
      .where({ id: keyOf(prefix, 'job') })
      .delete();
    await expect(hold.extend()).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect((await locks.inspect('job')).held).toBe(false);
    await knex.destroy();
  });
});

/** A knex whose connections count their statements, and fail the next ones that change something. */
function failing(
  knex: Knex,
  error: object,
): { faulty: KnexLike; strikes: { left: number; statements: number; takes: number } } {
  const strikes = { left: 0, statements: 0, takes: 0 };
  const strike = (text: string): Error | undefined => {
    strikes.statements += 1;
    if (text.includes('INSERT INTO holdfast_locks')) strikes.takes += 1;
    if (strikes.left === 0 || !/INSERT|UPDATE/.test(text)) return undefined;
    strikes.left -= 1;
    return Object.assign(new Error('a conflict, made for the test'), error);
  };
  const wrapped = new WeakMap<object, object>();
  const wrap = (connection: object): object => {
    const known = wrapped.get(connection);
    if (known !== undefined) return known;
    const proxy = new Proxy(connection, {
      get(target, property) {
        const value = Reflect.get(target, property) as unknown;
        if (typeof value !== 'function') return value;
        if (property !== 'query' && property !== 'execute') return value.bind(target);
        return (first: string | { text: string }, ...rest: unknown[]) => {
          const struck = strike(typeof first === 'string' ? first : first.text);
          if (struck === undefined) return value.call(target, first, ...rest);
          if (typeof first !== 'string') return Promise.reject(struck);
          (rest.at(-1) as (error: Error) => void)(struck);
          return undefined;
        };
      },
    });
    wrapped.set(connection, proxy);
    wrapped.set(proxy, connection);
    return proxy;
  };
  const { client } = knex as KnexLike;
  const faulty: KnexLike = {
    client: {
      driverName: String(client.driverName),
      acquireConnection: async () => wrap((await client.acquireConnection()) as object),
      releaseConnection: (connection) =>
        client.releaseConnection(wrapped.get(connection as object) ?? connection),
      acquireRawConnection: () => client.acquireRawConnection(),
      destroyRawConnection: (connection) => client.destroyRawConnection(connection),
    },
  };
  return { faulty, strikes };
}

describe('behind a pooler in transaction mode', () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await startPooledPostgres();
  });
  afterAll(() => database.stop());

  it('sql-pgbouncer, sql-pooled-advisory: works on polling, keeps one holder, leaves no session lock', async () => {
    const [a, b] = [await locksAt(database.url), await locksAt(database.url)];
    expect(a.backend.capabilities.wake).toBe('poll');
    const knex = knexFor(database.url);
    for (let round = 0; round < 20; round++) {
      const hold = await a.lock('job').acquire();
      expect(await b.lock('job').tryAcquire()).toBeNull();
      await knex.raw('SELECT 1');
      const waiting = b.lock('job').acquire();
      expect(await hold.release()).toBe(true);
      expect(await (await waiting).release()).toBe(true);
    }
    const { rows } = await knex.raw("SELECT count(*)::int AS n FROM pg_locks WHERE locktype = 'advisory'");
    expect(rows[0].n).toBe(0);
    await knex.destroy();
  });
});

describe('on postgres that is serializable by default', () => {
  let database: TestDatabase;

  beforeAll(async () => {
    const postgres = DATABASES.find(({ name }) => name === 'postgres');
    database = (await postgres?.start()) as TestDatabase;
    const knex = knexFor(database.url);
    await knex.raw("ALTER DATABASE holdfast SET default_transaction_isolation = 'serializable'");
    await knex.destroy();
  });
  afterAll(() => database.stop());

  it('sql-serialization: twenty contend, one holds at a time, nobody hears of a conflict', async () => {
    const instances = await Promise.all([1, 2, 3, 4].map(() => locksAt(database.url)));
    let inside = 0;
    let most = 0;
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        (instances[index % 4] as Locks).lock('job').run(
          async () => {
            inside += 1;
            most = Math.max(most, inside);
            await new Promise((resolve) => setImmediate(resolve));
            inside -= 1;
          },
          { wait: 50_000 },
        ),
      ),
    );
    expect(most).toBe(1);
  });
});
