import { type RedisClusterHandle, type RedisHandle, startRedis, startRedisCluster } from '@holdfast/testbed';
import { Cluster } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fencedSet, fenceKeyOf } from './fenced-set.js';
import { slotOf } from './slot.js';
import { admin } from './test-kit.js';

let server: RedisHandle;

beforeAll(async () => {
  server = await startRedis({ own: true });
});

afterAll(() => server.stop());

describe('fencedSet', () => {
  it('writes with the newest token, again with the same, and refuses an older one', async () => {
    using client = admin(server.url);
    await fencedSet(client, 'report', 'one', 7n);
    await fencedSet(client, 'report', 'two', 7n);
    await fencedSet(client, 'report', 'three', 10n);
    await expect(fencedSet(client, 'report', 'late', 9n)).rejects.toMatchObject({
      code: 'STALE_TOKEN',
      token: 9n,
      newest: 10n,
    });
    expect(await client.get('report')).toBe('three');
  });

  it('tells tokens apart that a double cannot', async () => {
    using client = admin(server.url);
    await fencedSet(client, 'big', 'new', 2n ** 63n - 1n);
    await expect(fencedSet(client, 'big', 'old', 2n ** 63n - 2n)).rejects.toMatchObject({
      newest: 2n ** 63n - 1n,
    });
  });

  it('takes bytes, works after SCRIPT FLUSH, and refuses what is no token', async () => {
    using client = admin(server.url);
    await client.script('FLUSH');
    await fencedSet(client, 'bytes', Buffer.from([0, 255, 10]), 1n);
    expect(await client.getBuffer('bytes')).toEqual(Buffer.from([0, 255, 10]));
    await expect(fencedSet(client, 'bytes', '', -1n)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(fencedSet(client, 'bytes', '', 1 as never)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
  });

  it('of a server that refuses is a BackendError with the cause', async () => {
    using client = admin(server.url);
    await client.lpush('list:fence', 'x');
    await client.lpush('{list}:fence', 'x');
    await expect(fencedSet(client, 'list', 'x', 1n)).rejects.toMatchObject({
      code: 'BACKEND_REFUSED',
      cause: { message: expect.stringContaining('WRONGTYPE') },
    });
  });
});

describe('fencedSet on a cluster', () => {
  let servers: RedisClusterHandle;

  beforeAll(async () => {
    servers = await startRedisCluster();
  });

  afterAll(() => servers.stop());

  it('keeps the token in the slot of the value', async () => {
    const client = new Cluster(servers.nodes.map(({ host, port }) => ({ host, port })));
    for (const key of ['plain', 'with{tag}x', '{open', 'a:b']) {
      await fencedSet(client, key, 'v', 2n);
      await expect(fencedSet(client, key, 'v', 1n)).rejects.toMatchObject({ code: 'STALE_TOKEN' });
    }
    client.disconnect();
  });
});

it('the token’s key is in the slot of the value’s, or there is none', () => {
  for (const key of ['plain', 'with{tag}x', '{open', '{a}{b}'])
    expect(slotOf(fenceKeyOf(key))).toBe(slotOf(key));
  expect(() => fenceKeyOf('a}b')).toThrow(/hash tag/);
  expect(() => fenceKeyOf('a{}b')).toThrow(/hash tag/);
});
