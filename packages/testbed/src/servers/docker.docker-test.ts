import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Cluster, Redis } from 'ioredis';
import { getContainerRuntimeClient } from 'testcontainers';
import { describe, expect, test } from 'vitest';
import { redisCommand } from '../proxy/matchers.js';
import { startProxy } from '../proxy/proxy.js';
import { startEtcdCluster } from './etcd.js';
import { startRedis } from './redis.js';
import { startRedisCluster } from './redis-cluster.js';
import { startRedisSentinel } from './redis-sentinel.js';

const TESTBED = fileURLToPath(new URL('../../dist/index.js', import.meta.url));

/** Names begin with `in Docker`: run by `pnpm test:docker` only. */
describe('in Docker', () => {
  test('a server comes from an image and keeps its data when it is killed', async () => {
    await using redis = await startRedis({ persistence: 'aof', password: 'secret' });
    expect(redis.provider).toBe('docker');
    const client = new Redis(redis.url, { maxRetriesPerRequest: null });
    client.on('error', () => undefined);
    await client.set('key', 'kept');
    await redis.node.restart({ by: 'kill' });
    expect(await client.get('key')).toBe('kept');
    client.disconnect();
  });

  test('an answer is lost on its way from a container', async () => {
    await using redis = await startRedis({ own: true });
    await using proxy = await startProxy({ target: redis.node });
    const client = new Redis(proxy.url, { retryStrategy: () => 10, maxRetriesPerRequest: 0 });
    client.on('error', () => undefined);
    proxy.dropAnswerTo(redisCommand('incr'));
    await expect(client.incr('count')).rejects.toThrow();
    expect(await client.get('count')).toBe('1');
    client.disconnect();
  });

  test('sentinels, a cluster and etcd members find each other', async () => {
    await using sentinel = await startRedisSentinel({ own: true });
    await sentinel.dataNodes[0]?.kill();
    if (sentinel.dataNodes[0] === undefined) throw new Error('there is no data node');
    await sentinel.failedOver(sentinel.dataNodes[0]);

    await using cluster = await startRedisCluster({ own: true });
    const client = new Cluster(cluster.nodes.map(({ host, port }) => ({ host, port })));
    client.on('error', () => undefined);
    expect(await client.set('key', 'value')).toBe('OK');
    client.disconnect();

    await using etcd = await startEtcdCluster({ own: true });
    const before = await etcd.leader();
    await etcd.nodes[before]?.kill();
    await expect
      .poll(() => etcd.leader(etcd.nodes[(before + 1) % 3]).catch(() => before), { timeout: 30_000 })
      .not.toBe(before);
  });

  test('kill −9 of the test process takes its containers with it', async () => {
    const program = `
      import { startRedis } from '${TESTBED}';
      const [redis, paused] = await Promise.all([startRedis({ own: true }), startRedis({ own: true })]);
      await paused.node.pause();
      console.log([redis.node.port, paused.node.port].join());
      setInterval(() => undefined, 1000);
    `;
    const before = await containers();
    const parent = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await firstOutput(parent);
    expect((await containers()).length).toBe(before.length + 2);
    parent.kill('SIGKILL');
    await expect.poll(containers, { timeout: 30_000 }).toEqual(before);
  });
});

async function containers(): Promise<string[]> {
  const { container } = await getContainerRuntimeClient();
  const all = await container.dockerode.listContainers({ all: true });
  return all.map(({ Id }) => Id).sort();
}

async function firstOutput(child: ChildProcess): Promise<string> {
  for await (const chunk of child.stdout ?? []) return String(chunk);
  throw new Error('The process ended without a word.');
}
