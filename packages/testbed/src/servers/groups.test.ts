import { Cluster, Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { startEtcd, startEtcdCluster } from './etcd.js';
import { askEtcd } from './etcd-gateway.js';
import { noNamespaces } from './namespaces.js';
import { exchange } from './probe.js';
import { startRedis } from './redis.js';
import { startRedisCluster } from './redis-cluster.js';
import { startRedisQuorum } from './redis-quorum.js';
import { startRedisSentinel } from './redis-sentinel.js';
import { startZooKeeperCluster } from './zookeeper.js';

// Failovers take their time on a busy machine.
describe.concurrent('groups of servers', { timeout: 90_000 }, () => {
  test('Sentinels promote a replica when the primary is killed, and clients follow through the proxies', async () => {
    await using group = await startRedisSentinel({ proxied: true, password: 'secret' });
    const before = await group.primary();
    expect(before).toBe(group.dataNodes[0]);
    await before.kill();
    const after = await group.failedOver(before);
    expect(after).not.toBe(before);

    const sentinels = group.proxies.slice(group.dataNodes.length).map(({ host, port }) => ({ host, port }));
    const client = new Redis({ sentinels, name: group.primaryName, password: 'secret' });
    client.on('error', () => undefined);
    expect(await client.set('key', 'value')).toBe('OK');
    const proxy = group.proxies[group.dataNodes.indexOf(after)];
    expect(client.stream).toMatchObject({ remotePort: proxy?.port });
    client.disconnect();
  });

  test('a cluster serves every slot through the proxies that its nodes announce', async () => {
    await using cluster = await startRedisCluster({ proxied: true });
    const client = new Cluster(cluster.proxies.map(({ host, port }) => ({ host, port })));
    client.on('error', () => undefined);
    const names = Array.from({ length: 20 }, (_, index) => `key-${index}`);
    await Promise.all(names.map((name) => client.set(name, name)));
    const owner = await cluster.ownerOf('key-1');
    const seen = cluster.proxies[cluster.nodes.indexOf(owner)]?.observe('key-1\r\n');
    expect(await client.get('key-1')).toBe('key-1');
    expect(seen?.hits).toBe(1);
    client.disconnect();
  });

  test('a replica takes over when the cluster loses a primary', async ({ expect }) => {
    await using cluster = await startRedisCluster({ replicas: 1 });
    const owner = await cluster.ownerOf('key');
    await owner.kill();
    await expect.poll(() => cluster.ownerOf('key'), { timeout: 20_000 }).not.toBe(owner);
  });

  test('five servers know nothing of each other', async () => {
    await using quorum = await startRedisQuorum();
    const clients = quorum.nodes.map((node) => new Redis(node.url));
    await clients[0]?.set('key', 'first');
    expect(await Promise.all(clients.map((client) => client.get('key')))).toEqual([
      'first',
      null,
      null,
      null,
      null,
    ]);
    for (const client of clients) client.disconnect();
  });

  test('Redis speaks TLS to a user with rights of its own, and forgets nothing', async () => {
    const users = [{ name: 'app', password: 'p@ss word', rules: '~app:* &* +@all' }];
    await using redis = await startRedis({
      tls: true,
      users: users.map((u) => ({ ...u, password: 'p@ss' })),
      persistence: 'aof',
    });
    const connect = () => new Redis(redis.url, { tls: { ca: redis.tls?.ca ?? '' }, retryStrategy: null });
    const first = connect();
    await first.set('app:key', 'kept');
    await expect(first.set('other', 'refused')).rejects.toThrow('NOPERM');
    first.disconnect();
    await redis.node.restart({ by: 'kill' });
    const second = connect();
    expect(await second.get('app:key')).toBe('kept');
    second.disconnect();
  });

  test('etcd asks for the password, over TLS', async () => {
    await using etcd = await startEtcd({ rootPassword: 'secret', tls: true });
    const open = { scheme: 'https', ca: etcd.tls?.ca ?? '' } as const;
    const range = { key: Buffer.from('key').toString('base64') };
    await expect(askEtcd(etcd.node.port, open, '/v3/kv/range', range)).rejects.toThrow('user name is empty');
    await askEtcd(etcd.node.port, { ...open, rootPassword: 'secret' }, '/v3/kv/range', range);
    expect(etcd.url).toMatch(/^etcds:\/\/root:secret@127/);
  });

  test('an etcd leader that is cut off is replaced, and joins again', async ({ expect }) => {
    await using etcd = await startEtcdCluster({ partitionable: true });
    const leader = await etcd.leader();
    const [isolated, other] = [etcd.nodes[leader], etcd.nodes[(leader + 1) % 3]];
    if (isolated === undefined || other === undefined) throw new Error('three members were asked for');
    etcd.isolate(isolated);
    await expect.poll(() => etcd.leader(other).catch(() => leader), { timeout: 20_000 }).not.toBe(leader);
    const range = { key: Buffer.from('key').toString('base64') };
    await expect(askEtcd(isolated.port, { scheme: 'http' }, '/v3/kv/range', range)).rejects.toThrow();
    await etcd.rejoin();
    await expect
      .poll(
        () => askEtcd(isolated.port, { scheme: 'http' }, '/v3/kv/range', range).then(() => 'serves', String),
        {
          timeout: 20_000,
        },
      )
      .toBe('serves');
  });

  // In namespaces where this machine can make them.
  test.for(['proxies' as const, ...(noNamespaces() === undefined ? (['namespaces'] as const) : [])])(
    'a ZooKeeper leader that is cut off by %s is replaced while clients still reach it, and joins again',
    async (partitionable, { expect }) => {
      await using ensemble = await startZooKeeperCluster({ partitionable });
      const leader = await ensemble.leader();
      const isolated = ensemble.nodes[leader];
      if (isolated === undefined) throw new Error('three members were asked for');
      ensemble.isolate(isolated);
      await expect.poll(() => ensemble.leader().catch(() => leader), { timeout: 30_000 }).not.toBe(leader);
      await exchange(isolated.port, {
        send: 'srvr',
        accept: (text) => text.includes('not currently serving'),
      });
      await ensemble.rejoin();
      await expect
        .poll(
          () =>
            exchange(isolated.port, { send: 'srvr', accept: (text) => text.includes('Mode: follower') }).then(
              () => 'follows',
              String,
            ),
          { timeout: 30_000 },
        )
        .toBe('follows');
    },
  );
});
