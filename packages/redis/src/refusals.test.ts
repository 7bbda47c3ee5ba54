import { inspect } from 'node:util';
import { createLocks } from '@holdfast/core';
import {
  type RedisHandle,
  type RedisSentinelHandle,
  startProxy,
  startRedis,
  startRedisSentinel,
} from '@holdfast/testbed';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis-5';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { redisBackend } from './module.js';
import { acquire } from './scripts.generated.js';
import { admin, open, timed, until } from './test-kit.js';

/** Less than a command may take: nothing was asked again. */
const AT_ONCE = 1900;

describe('real-cause-hidden: a permanent refusal fails at once with the server’s own words', () => {
  let server: RedisHandle;

  beforeAll(async () => {
    server = await startRedis({
      password: 'right',
      users: [
        { name: 'admin', password: 'right', rules: '~* &* +@all' },
        { name: 'noscripts', password: 'pw', rules: '~* &* +@all -evalsha -eval' },
        { name: 'nokeys', password: 'pw', rules: '~other:* &* +@all' },
        { name: 'readers', password: 'pw', rules: '~* &* +@all -set' },
        { name: 'nochannels', password: 'pw', rules: '~* resetchannels +@all' },
      ],
    });
  });

  afterAll(() => server.stop());

  const at = (path: string) => `redis://${path.replace('HOST', server.node.address)}`;

  it.each([
    ['a wrong password', 'admin:hunter2@HOST', 'WRONGPASS'],
    ['no password', 'HOST', 'NOAUTH'],
    ['a database that is not there', 'admin:right@HOST/9999', 'DB index is out of range'],
    ['channels that are forbidden', 'nochannels:pw@HOST', 'NOPERM'],
    ['scripts that are forbidden', 'noscripts:pw@HOST', 'NOPERM'],
    ['keys that are forbidden', 'nokeys:pw@HOST', 'NOPERM'],
  ])('on opening: %s', async (_what, path, words) => {
    const { error, ms } = await timed(open({ url: at(path) }));
    expect(error).toMatchObject({ code: 'BACKEND_REFUSED', transient: false });
    expect((error as Error).message).toContain(words);
    expect((error as Error).cause).toMatchObject({ message: expect.stringContaining(words) });
    expect(ms).toBeLessThan(AT_ONCE);
  });

  it('on acquiring: writes that are forbidden', async () => {
    await using locks = await open({ url: at('readers:pw@HOST') }, { commandTimeout: 1000 });
    const { error, ms } = await timed(locks.lock('job').acquire());
    expect(error).toMatchObject({ code: 'BACKEND_REFUSED', transient: false, lockName: 'job' });
    expect((error as Error).cause).toMatchObject({
      message: expect.stringContaining("can't run this command"),
    });
    expect(inspect(error)).not.toContain('redis.call');
    expect(ms).toBeLessThan(AT_ONCE);
  });

  it.each([
    ['ioredis 6', Redis],
    ['ioredis 5', Redis5 as unknown as typeof Redis],
  ])('with a client that was handed in (%s)', async (_version, Client) => {
    const client = new Client(at('admin:hunter2@HOST'), { lazyConnect: true });
    const { error } = await timed(createLocks(redisBackend({ client })));
    expect(error).toMatchObject({ code: 'BACKEND_REFUSED', transient: false });
    const db = new Client(at('admin:right@HOST/9999'), { lazyConnect: true });
    expect((await timed(createLocks(redisBackend({ client: db })))).error).toMatchObject({
      code: 'BACKEND_REFUSED',
      message: expect.stringContaining('DB index'),
    });
  });

  it('never shows the password, however deep one looks into the error', async () => {
    const { error } = await timed(open({ url: at('admin:hunter2@HOST') }));
    expect(inspect(error, { depth: 20, showHidden: true })).not.toContain('hunter2');
  });
});

describe('a server that is something else', () => {
  let servers: RedisSentinelHandle;

  beforeAll(async () => {
    servers = await startRedisSentinel({ replicas: 1, sentinels: 3 });
  });

  afterAll(() => servers.stop());

  it('real-cause-hidden: a sentinel says so at once', async () => {
    const { error, ms } = await timed(open({ url: `redis://${servers.sentinels[0]?.address}` }));
    expect(error).toMatchObject({
      code: 'BACKEND_REFUSED',
      cause: { message: expect.stringContaining('unknown command') },
    });
    expect(ms).toBeLessThan(AT_ONCE);
  });

  it('a replica is read-only, also after a reconnect', async () => {
    const replica = servers.dataNodes[1];
    await using locks = await open({ url: `redis://${replica?.address}` });
    const { error } = await timed(locks.lock('job').acquire({ wait: 20_000 }));
    expect(error).toMatchObject({
      code: 'BACKEND_REFUSED',
      transient: false,
      message: expect.stringContaining('read-only replica'),
    });
  });

  it('a server without cluster mode is no cluster', async () => {
    const { error } = await timed(open({ url: `redis+cluster://${servers.dataNodes[0]?.address}` }));
    expect(error).toMatchObject({
      code: 'BACKEND_REFUSED',
      message: expect.stringContaining('cluster support disabled'),
    });
  });

  it('a master that Sentinel does not know', async () => {
    const url = servers.url.replace(servers.primaryName, 'unheard-of');
    const { error } = await timed(open({ url }, { commandTimeout: 1000 }));
    expect(error).toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
  });
});

describe('a refusal that passes', () => {
  let server: RedisHandle;

  beforeAll(async () => {
    server = await startRedis({ own: true });
  });

  afterAll(() => server.stop());

  it('misconf-release-silent: a release that the server refuses is told, and works once it may', async () => {
    await using locks = await open({ url: server.url }, { commandTimeout: 1000 });
    using client = admin(server.url);
    const hold = await locks.lock('job').acquire();
    await client.config('SET', 'min-replicas-to-write', '1');

    await expect(hold.release()).rejects.toMatchObject({
      code: 'BACKEND_REFUSED',
      transient: true,
      cause: { message: expect.stringContaining('NOREPLICAS') },
    });

    await client.config('SET', 'min-replicas-to-write', '0');
    expect(await hold.release()).toBe(true);
    expect(await client.exists('holdfast:{job}')).toBe(0);
  });

  it('memory that is full for a moment only delays an acquisition', async () => {
    await using proxy = await startProxy({ target: server.node });
    await using locks = await open({ url: `redis://${proxy.address}` });
    using client = admin(server.url);
    const attempts = proxy.observe(acquire.sha);
    await client.config('SET', 'maxmemory', '1');
    const acquiring = locks.lock('full').acquire({ wait: 20_000 });
    // The first was refused when the second is sent.
    await until(() => attempts.hits >= 2);
    await client.config('SET', 'maxmemory', '0');
    expect((await acquiring).isHeld()).toBe(true);
  });
});

describe('TLS', () => {
  let server: RedisHandle;

  beforeAll(async () => {
    server = await startRedis({ tls: true });
  });

  afterAll(() => server.stop());

  it('works with the authority that is given', async () => {
    await using locks = await open({ url: server.url, tls: { ca: server.tls?.ca } });
    expect(await locks.lock('job').run(() => 'done')).toBe('done');
  });

  it('refuses a certificate that nobody vouches for, at once', async () => {
    const { error, ms } = await timed(open({ url: server.url }));
    expect(error).toMatchObject({ code: 'BACKEND_REFUSED', transient: false });
    expect(ms).toBeLessThan(AT_ONCE);
  });

  it.each(['redis', 'redis+cluster', 'redis+sentinel'])(
    'spoken where %s:// expects none is told',
    async (scheme) => {
      const url = `${scheme}://${server.node.address}${scheme === 'redis+sentinel' ? '/main' : ''}`;
      const { error } = await timed(open({ url }, { commandTimeout: 1000 }));
      expect(error).toMatchObject({
        code: 'BACKEND_UNAVAILABLE',
        message: expect.stringMatching(/speaks? TLS .*begins with rediss|begins with rediss .*speak TLS/),
      });
    },
  );

  it.each(['rediss', 'rediss+cluster', 'rediss+sentinel'])(
    'not spoken where %s:// expects it is told',
    async (scheme) => {
      const plain = await startRedis({ own: true });
      const url = `${scheme}://${plain.node.address}${scheme === 'rediss+sentinel' ? '/main' : ''}`;
      const { error } = await timed(open({ url }, { commandTimeout: 1000 }));
      expect(error).toMatchObject({
        // A server that reads a line in the handshake answers it, which is a refusal; others wait for more.
        code: expect.stringMatching(/^BACKEND_(UNAVAILABLE|REFUSED)$/),
        message: expect.stringMatching(/not to speak TLS .*begins with redis,|speak TLS, and with redis/),
      });
      await plain.stop();
    },
  );

  it('is not blamed for a server that goes away', async () => {
    const plain = await startRedis({ own: true });
    await using locks = await open({ url: plain.url }, { commandTimeout: 1000 });
    const failures: unknown[] = [];
    locks.on('error', ({ error }) => failures.push(error));
    await plain.stop();
    const { error } = await timed(locks.lock('job').acquire({ wait: 500 }));
    expect(error).toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
    expect(`${error} ${failures.join(' ')}`).not.toContain('TLS');
  });
});
