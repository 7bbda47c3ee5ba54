import { createLocks } from '@holdfast/core';
import { type RedisSentinelHandle, startRedisSentinel } from '@holdfast/testbed';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { redisBackend } from './module.js';
import { admin, open, timed, until } from './test-kit.js';

describe('behind Sentinel', () => {
  let servers: RedisSentinelHandle;

  beforeAll(async () => {
    servers = await startRedisSentinel({ password: 'secret' });
  });

  afterAll(() => servers.stop());

  it('resend-wrong-db: the database is the one that was named', async () => {
    await using locks = await open({ url: `${servers.url}/1` });
    await locks.lock('db').acquire();
    const primary = await servers.primary();
    using zero = admin(`${primary.url}/0`);
    using one = admin(`${primary.url}/1`);
    expect(await zero.keys('holdfast:*')).toEqual([]);
    expect(await one.exists('holdfast:{db}')).toBe(1);
    await one.flushdb();
  });

  it('a client that was handed in finds the master by itself', async () => {
    const sentinels = servers.sentinels.map(({ host, port }) => ({ host, port }));
    const given = new Redis({ sentinels, name: servers.primaryName, password: 'secret' });
    await using locks = await createLocks(redisBackend({ client: given }));
    expect(locks.backend.capabilities.consistency).toBe('async-replicated');
    expect(await locks.lock('given').run(() => 'done')).toBe('done');
    given.disconnect();
  });

  it('minReplicas: a grant counts once the replicas have it, and is given back when they do not', async () => {
    await using locks = await open({ url: servers.url, minReplicas: 2, minReplicasTimeout: 300 });
    const hold = await locks.lock('replicated').acquire({ ttl: 20_000 });
    for (const node of servers.dataNodes) {
      if (node === (await servers.primary())) continue;
      using replica = admin(node.url);
      expect(await replica.exists('holdfast:{replicated}')).toBe(1);
    }
    await hold.release();

    const primary = await servers.primary();
    const replicas = servers.dataNodes.filter((node) => node !== primary);
    await replicas[0]?.pause();
    const { error } = await timed(locks.lock('short').acquire({ wait: 1500 }));
    expect(error).toMatchObject({
      code: 'BACKEND_UNAVAILABLE',
      message: expect.stringContaining('1 of 2 replicas'),
    });
    await replicas[0]?.resume();
    await using plain = await open({ url: servers.url });
    await until(async () => (await plain.inspect('short')).held === false);
  }, 60_000);

  it('after a failover the name is served again, and no token has fallen', async () => {
    await using locks = await open({ url: servers.url });
    const tokens: bigint[] = [];
    const round = async () => {
      const hold = await locks.lock('failover').acquire({ wait: 60_000, ttl: 2000 });
      tokens.push(hold.fencingToken);
      await hold.release();
    };
    await round();
    await using other = await open({ url: servers.url });
    // Not renewed: a failover that is quick, and loses nothing, would leave it held.
    const held = await locks.lock('held').acquire({ ttl: 3000, renew: false });
    const waiting = other.lock('held').acquire({ wait: 60_000, ttl: 3000 });
    await until(async () => (await locks.inspect('held')).waiters.length === 1);
    const before = await servers.primary();

    await before.kill();
    await servers.failedOver(before);
    await round();
    const next = await waiting;

    expect(tokens).toEqual([...tokens].sort((x, y) => (x < y ? -1 : 1)));
    expect(next.fencingToken).toBeGreaterThan(held.fencingToken);
    await before.start();
  }, 120_000);

  it('a master that has gone silent is left for the one that Sentinel names', async () => {
    await using locks = await open({ url: servers.url });
    await locks.lock('silent').run(() => undefined);
    const before = await servers.primary();
    await before.pause();
    await servers.failedOver(before);
    const hold = await locks.lock('silent').acquire({ wait: 60_000 });
    expect(hold.isHeld()).toBe(true);
    await before.resume();
  }, 120_000);
});
