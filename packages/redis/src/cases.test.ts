import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createLocks, type Locks } from '@holdfast/core';
import { type FaultProxy, type RedisHandle, startProxy, startRedis } from '@holdfast/testbed';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis-5';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { redisBackend } from './module.js';
import { refresh, release, renew } from './scripts.generated.js';
import { admin, open, pause, timed, until } from './test-kit.js';

let server: RedisHandle;
let client: Redis & Disposable;

beforeAll(async () => {
  server = await startRedis({ own: true });
  client = admin(server.url);
});

afterAll(async () => {
  client.disconnect();
  await server.stop();
});

beforeEach(async () => {
  await client.flushall();
});

/** Counts what clients send to the server, until the returned function is called. */
async function counting(): Promise<() => Promise<ReadonlyMap<string, number>>> {
  await client.config('RESETSTAT');
  return async () => {
    const stats = await client.info('commandstats');
    return new Map(
      [...stats.matchAll(/cmdstat_(\S+):calls=(\d+)/g)].map(([, name, calls]) => [
        String(name),
        Number(calls),
      ]),
    );
  };
}

describe('a key that somebody else has written', () => {
  it('is refused with what to do, at once, and left alone', async () => {
    await using locks = await open({ url: server.url });
    await client.set('holdfast:{k}', 'foreign');
    await expect(locks.lock('k').acquire({ wait: '1m' })).rejects.toMatchObject({
      code: 'BACKEND_REFUSED',
      message: expect.stringContaining('use another prefix'),
    });
    expect(await client.get('holdfast:{k}')).toBe('foreign');
  });
});

describe('times at the server', () => {
  it('ttl-fractional: a fraction of a millisecond is rounded up', async () => {
    await using locks = await open({ url: server.url });
    const hold = await locks.lock('foo').acquire({ ttl: 123.45, wait: 1000, renew: false });
    expect(hold.ttl).toBe(124);
    const left = await client.pttl('holdfast:{foo}');
    expect([left > 0, left <= 124]).toEqual([true, true]);
  });

  it('ttl-zero-deletes-on-extend: an extension by nothing is refused and changes nothing', async () => {
    await using locks = await open({ url: server.url });
    const hold = await locks.lock('k').acquire({ ttl: 10_000 });
    for (const ttl of [0, -1, Number.NaN]) {
      await expect(hold.extend(ttl)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    }
    expect(await client.pttl('holdfast:{k}')).toBeGreaterThan(8000);
    expect(await locks.lock('k').tryAcquire()).toBeNull();
  });

  it('ttl-unit-mixup, extend-seconds-vs-ms: milliseconds stay milliseconds', async () => {
    await using locks = await open({ url: server.url });
    const hold = await locks.lock('units').acquire({ ttl: 2000, renew: false });
    const first = await client.pttl('holdfast:{units}');
    await hold.extend(4000);
    const second = await client.pttl('holdfast:{units}');
    expect([first <= 2000, first > 500, second <= 4000, second > 2000]).toEqual([true, true, true, true]);
  });
});

describe('release', () => {
  it('release-expired-loops: of an expired lock says so with one script', async () => {
    await using locks = await open({ url: server.url });
    const hold = await locks.lock('gone').acquire({ ttl: 50, renew: false });
    await until(async () => (await client.exists('holdfast:{gone}')) === 0);
    const counts = await counting();
    expect(await hold.release()).toBe(false);
    expect((await counts()).get('evalsha') ?? 0).toBeLessThanOrEqual(1);
  });

  it('release-race-with-expiry: around the expiry it is true or false, never an error', async () => {
    await using locks = await open({ url: server.url });
    const outcomes = new Set<unknown>();
    for (let round = 0; round < 100; round++) {
      const hold = await locks.lock('race').acquire({ ttl: 20, renew: false });
      await pause(15 + (round % 8));
      outcomes.add(await hold.release());
    }
    expect([...outcomes].filter((outcome) => typeof outcome !== 'boolean')).toEqual([]);
  });

  it('renew-outlives-release: after release nothing is renewed', async () => {
    await using locks = await open({ url: server.url });
    for (let round = 0; round < 100; round++) await (await locks.lock('r').acquire({ ttl: 300 })).release();
    const counts = await counting();
    await pause(600);
    expect((await counts()).get('evalsha') ?? 0).toBe(0);
    expect(await client.exists('holdfast:{r}')).toBe(0);
  });
});

describe('noscript: a server that has forgotten the scripts', () => {
  it('is told each of them once', async () => {
    await using locks = await open({ url: server.url });
    const hold = await locks.lock('n').acquire();
    await client.script('FLUSH');
    const counts = await counting();
    await hold.extend(20_000);
    await hold.extend(20_000);
    expect(await hold.release()).toBe(true);
    await (await locks.lock('n').acquire()).release();
    expect((await counts()).get('eval')).toBe(3);
  });

  it('also when many ask in one go', async () => {
    await using locks = await open({ url: server.url });
    const holds = await Promise.all(Array.from({ length: 50 }, (_, i) => locks.lock(`n${i}`).acquire()));
    await client.script('FLUSH');
    const counts = await counting();
    await Promise.all(holds.map((hold) => hold.extend(20_000)));
    expect((await counts()).get('eval')).toBe(1);
    await client.script('FLUSH');
    expect(await Promise.all(holds.map((hold) => hold.release()))).not.toContain(false);
  });

  it('also after a restart', async () => {
    await using locks = await open({ url: server.url });
    await (await locks.lock('n').acquire()).release();
    await server.node.restart();
    expect((await locks.lock('n').acquire({ wait: 15_000 })).isHeld()).toBe(true);
  });
});

describe('waiting', () => {
  it('channel-leak: one subscription for each instance, whatever was waited for', async () => {
    const instances = await Promise.all([open({ url: server.url }), open({ url: server.url })]);
    await using holder = await open({ url: server.url });
    const names = Array.from({ length: 50 }, (_, i) => `c${i}`);
    await Promise.all(names.map((name) => holder.lock(name).acquire()));
    const waits = instances.flatMap((locks) =>
      names.map((name, i) => timed(locks.lock(name).acquire({ wait: 400 + i * 3 }))),
    );
    const codes = (await Promise.all(waits)).map(({ error }) => (error as { code?: string }).code);
    expect(new Set(codes)).toEqual(new Set(['LOCK_TIMEOUT']));
    expect(await client.pubsub('CHANNELS', 'holdfast:*')).toHaveLength(3);
    await Promise.all(instances.map((locks) => locks.close()));
    await until(async () => (await client.pubsub('CHANNELS', 'holdfast:*')).length === 1);
    await until(async () => (await client.keys('holdfast:*:queue')).length === 0);
  });

  it('fair-timeout-drift: waiters that died together delay the next by one grace', async () => {
    await using holder = await open({ url: server.url });
    await using next = await open({ url: server.url });
    const proxy: FaultProxy = await startProxy({ target: server.node });
    const doomed = await open({ url: `redis://${proxy.address}` }, { commandTimeout: 500 });
    const hold = await holder.lock('drift').acquire({ ttl: 60_000 });
    const waits = Array.from({ length: 50 }, () => timed(doomed.lock('drift').acquire({ ttl: 30_000 })));
    await until(async () => (await holder.inspect('drift')).waiters.length === 50);
    proxy.blackHole();
    const waiting = next.lock('drift').acquire({ ttl: 30_000, wait: 30_000 });
    await hold.release();

    // Liveness 5 s and one refresh period; generous for a slow machine.
    expect((await timed(waiting)).ms).toBeLessThan(15_000);

    await proxy.stop();
    await doomed.close();
    await Promise.all(waits);
  });

  it('followers-all-at-once: dead holders’ turns come one after another, also for the third', async () => {
    await using locks = await open({ url: server.url });
    const held = Array.from({ length: 3 }, async () => {
      const hold = await locks.lock('turns').acquire({ ttl: 600, renew: false });
      return { token: hold.fencingToken, at: performance.now() };
    });
    const grants = (await Promise.all(held)).sort((a, b) => (a.token < b.token ? -1 : 1));
    const gaps = grants.slice(1).map(({ at }, i) => at - (grants[i]?.at ?? 0));
    for (const gap of gaps) {
      expect(gap).toBeGreaterThan(550);
      expect(gap).toBeLessThan(1600);
    }
  });

  it('hand-over costs the same number of commands however many wait', async () => {
    await using locks = await open({ url: server.url });
    const perGrant = async (waiters: number): Promise<number> => {
      const name = `crowd${waiters}`;
      const first = await locks.lock(name).acquire();
      const waits = Array.from({ length: waiters }, () => locks.lock(name).acquire());
      await until(async () => (await locks.inspect(name)).waiters.length === waiters);
      const counts = await counting();
      await first.release();
      for (const wait of waits.slice(0, 10)) await (await wait).release();
      const seen = await counts();
      for (const wait of waits.slice(10)) await (await wait).release();
      return ((seen.get('evalsha') ?? 0) + (seen.get('eval') ?? 0)) / 10;
    };
    const [few, many] = [await perGrant(10), await perGrant(300)];
    expect(few).toBeLessThan(2.5);
    expect(many).toBeLessThan(2.5);
  });
});

describe('renewal', () => {
  it('of many holds travels in few writes', async () => {
    const proxy = await startProxy({ target: server.node });
    await using locks = await open({ url: `redis://${proxy.address}` });
    const holds = await Promise.all(
      Array.from({ length: 200 }, (_, i) => locks.lock(`many${i}`).acquire({ ttl: 3000 })),
    );
    const chunks = proxy.observe(renew.sha);
    let renewed = 0;
    locks.on('renewed', () => renewed++);
    await until(() => renewed >= 200);
    expect(chunks.hits).toBeLessThan(100);
    expect(holds.every((hold) => hold.isHeld())).toBe(true);
    await locks.close();
    await proxy.stop();
  });

  it('of a place in the queue goes on while it waits, and stops when nobody waits', async () => {
    const proxy = await startProxy({ target: server.node });
    await using locks = await open({ url: `redis://${proxy.address}` });
    const hold = await locks.lock('place').acquire();
    const signs = proxy.observe(refresh.sha);
    const given = proxy.observe(release.sha);
    const waiting = timed(locks.lock('place').acquire({ wait: 7000 }));
    expect((await waiting).error).toMatchObject({ code: 'LOCK_TIMEOUT' });
    expect(signs.hits).toBeGreaterThanOrEqual(3);
    // The place is given back behind the caller.
    await given.hit;
    const before = signs.hits;
    await pause(2000);
    expect(signs.hits).toBe(before);
    await hold.release();
    await locks.close();
    await proxy.stop();
  }, 40_000);
});

describe('connections', () => {
  it('CLIENT KILL of either connection costs nothing but time', async () => {
    await using locks = await open({ url: server.url });
    await using other = await open({ url: server.url });
    const hold = await locks.lock('killed').acquire();
    const waiting = other.lock('killed').acquire({ wait: 30_000 });
    await until(async () => (await locks.inspect('killed')).waiters.length === 1);
    const list = String(await client.client('LIST'));
    const ids = [...list.matchAll(/id=(\d+) .*name=holdfast(?:-wake)? /g)].map(([, id]) => String(id));
    expect(ids).toHaveLength(4);
    for (const id of ids) await client.client('KILL', 'ID', id);
    expect(await hold.release()).toBe(true);
    expect((await waiting).isHeld()).toBe(true);
  });

  it('FLUSHALL loses the lock, and the holder is told', async () => {
    await using locks = await open({ url: server.url });
    const hold = await locks.lock('flushed').acquire({ ttl: 1500 });
    const waiting = (await open({ url: server.url })) satisfies Locks;
    await client.flushall();
    await new Promise((resolve) => hold.signal.addEventListener('abort', resolve));
    const next = await waiting.lock('flushed').acquire({ wait: 10_000 });
    expect(next.fencingToken).toBeGreaterThan(hold.fencingToken);
    await waiting.close();
  });

  it.each([
    ['ioredis 6', Redis],
    ['ioredis 5', Redis5 as unknown as typeof Redis],
  ])('a client that was handed in is neither closed nor changed (%s)', async (_version, Client) => {
    const given = new Client(server.url, { keyPrefix: 'app:', db: 2 });
    await given.ping();
    const before = JSON.stringify(given.options);
    const locks = await createLocks(redisBackend({ client: given }));
    await locks.lock('mine').acquire();
    expect(await given.exists('holdfast:{mine}')).toBe(1);
    await locks.close();
    expect(given.status).toBe('ready');
    expect(given.eventNames().filter((name) => name === 'message' || name === 'error')).toEqual([]);
    expect(JSON.stringify(given.options)).toBe(before);
    await given.flushdb();
    given.disconnect();
  });

  it('idle, they do not keep the process alive', async () => {
    const core = import.meta.resolve('@holdfast/core');
    const redis = new URL('../dist/index.js', import.meta.url).href;
    const program = `
      import { createLocks } from ${JSON.stringify(core)};
      import { redisBackend } from ${JSON.stringify(redis)};
      const locks = await createLocks(redisBackend({ url: ${JSON.stringify(server.url)} }));
      await locks.lock('idle').acquire({ ttl: 1000 });
      console.log('held');
    `;
    const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
      timeout: 20_000,
      cwd: fileURLToPath(new URL('..', import.meta.url)),
    });
    expect((await run).stdout).toBe('held\n');
  });

  it('a server that has gone does not keep the process alive either', async () => {
    const core = import.meta.resolve('@holdfast/core');
    const redis = new URL('../dist/index.js', import.meta.url).href;
    const proxy = await startProxy({ target: server.node });
    const program = `
      import { createLocks } from ${JSON.stringify(core)};
      import { redisBackend } from ${JSON.stringify(redis)};
      const locks = await createLocks(redisBackend({ url: 'redis://${proxy.address}' }));
      console.log('open');
      process.stdin.on('data', () => process.stdin.destroy());
    `;
    const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
      timeout: 20_000,
      cwd: fileURLToPath(new URL('..', import.meta.url)),
    });
    await new Promise((resolve) => run.child.stdout?.once('data', resolve));
    await proxy.stop();
    run.child.stdin?.end('go');
    expect((await run).stdout).toBe('open\n');
  });
});

it('doctor: says what a server’s settings mean for locks', async () => {
  const backend = redisBackend({ url: server.url });
  await backend.open();
  await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
  await client.config('SET', 'maxmemory', '100mb');
  const findings = new Map((await backend.diagnose?.())?.map(({ id, level }) => [id, level]));
  await client.config('SET', 'maxmemory-policy', 'noeviction');
  await backend.close();
  expect(findings.get('redis-eviction')).toBe('danger');
  expect(findings.get('redis-persistence')).toBe('warning');
  expect(findings.get('redis-clock')).toBe('ok');
  expect(findings.get('redis-version')).toBe('ok');
});

it('list shows each name once, in every shape that a name can have', async () => {
  await using locks = await open({ url: server.url, prefix: 'p*[a]'.replace(/[^a-z]/g, '-') });
  const names = ['a', 'a{b}', '}{', 'x*', 'a:queue', '%7B', '🔑'];
  const holds = await Promise.all(names.map((name) => locks.lock(name).acquire()));
  const waiting = timed(locks.lock('a').acquire({ wait: 1000 }));
  await until(async () => (await locks.inspect('a')).waiters.length === 1);
  const met: string[] = [];
  for await (const state of locks.list()) met.push(state.name);
  expect(met.sort()).toEqual([...names].sort());
  const some: string[] = [];
  for await (const state of locks.list({ prefix: 'a' })) some.push(state.name);
  expect(some.sort()).toEqual(['a', 'a:queue', 'a{b}']);
  await waiting;
  await Promise.all(holds.map((hold) => hold.release()));
});
