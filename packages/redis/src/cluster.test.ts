import { createLocks, type Locks } from '@holdfast/core';
import { type RedisClusterHandle, type ServerNode, startRedisCluster } from '@holdfast/testbed';
import { Cluster } from 'ioredis';
import { Cluster as Cluster5 } from 'ioredis-5';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { redisBackend } from './module.js';
import { slotOf } from './slot.js';
import { admin, open, timed, until } from './test-kit.js';

const seedsOf = (servers: RedisClusterHandle) => servers.nodes.map(({ host, port }) => ({ host, port }));

/** Moves one slot with its keys, as `redis-cli --cluster reshard` does; calls `halfway` while keys are on both sides. */
async function move(
  servers: RedisClusterHandle,
  key: string,
  halfway: () => Promise<unknown> = async () => undefined,
): Promise<ServerNode> {
  const slot = slotOf(key);
  const from = await servers.ownerOf(key);
  const to = servers.nodes.find((node) => node !== from);
  if (to === undefined) throw new Error('a cluster of one');
  using source = admin(from.url);
  using target = admin(to.url);
  const [fromId, toId] = [String(await source.cluster('MYID')), String(await target.cluster('MYID'))];
  await target.call('cluster', 'setslot', String(slot), 'importing', fromId);
  await source.call('cluster', 'setslot', String(slot), 'migrating', toId);
  const keys = (await source.call('cluster', 'getkeysinslot', String(slot), '1000')) as string[];
  const [first, ...rest] = keys;
  if (first !== undefined) await source.call('migrate', to.host, String(to.port), first, '0', '5000');
  await halfway();
  for (const each of rest) await source.call('migrate', to.host, String(to.port), each, '0', '5000');
  // What was written to the source meanwhile.
  for (;;) {
    const late = (await source.call('cluster', 'getkeysinslot', String(slot), '1000')) as string[];
    if (late.length === 0) break;
    for (const each of late) await source.call('migrate', to.host, String(to.port), each, '0', '5000');
  }
  await target.call('cluster', 'setslot', String(slot), 'node', toId);
  await source.call('cluster', 'setslot', String(slot), 'node', toId);
  return to;
}

describe('a cluster', () => {
  let servers: RedisClusterHandle;

  beforeAll(async () => {
    servers = await startRedisCluster();
  });

  afterAll(() => servers.stop());

  it('derived-key-crossslot, brace-unclosed: every name works, contended too', async () => {
    await using a = await open({ url: servers.url });
    await using b = await open({ url: servers.url });
    for (const name of ['my-key', 'a{b}c', 'a}b{c', '{test', 'abc{}xyz', '}{', '{', '🔑 {x}']) {
      const hold = await a.lock(name).acquire();
      const waiting = b.lock(name).acquire({ wait: 15_000 });
      await until(async () => (await a.inspect(name)).waiters.length === 1);
      expect(await hold.release()).toBe(true);
      expect(await (await waiting).release()).toBe(true);
    }
  });

  it('list and doctor reach every node', async () => {
    await using locks = await open({ url: servers.url, prefix: 'all' });
    const names = Array.from({ length: 30 }, (_, i) => `name-${i}`);
    await Promise.all(names.map((name) => locks.lock(name).acquire()));
    const met: string[] = [];
    for await (const state of locks.list()) met.push(state.name);
    expect(met.sort()).toEqual([...names].sort());
    const backend = redisBackend({ url: servers.url });
    await backend.open();
    const versions = (await backend.diagnose?.())?.filter(({ id }) => id === 'redis-version');
    expect(versions).toHaveLength(3);
    await backend.close();
  });

  it('noscript: each node is told by itself', async () => {
    await using locks = await open({ url: servers.url });
    const holds = await Promise.all(Array.from({ length: 30 }, (_, i) => locks.lock(`ns-${i}`).acquire()));
    for (const node of servers.nodes) {
      using client = admin(node.url);
      await client.script('FLUSH');
    }
    await Promise.all(holds.map((hold) => hold.extend(30_000)));
    expect(await Promise.all(holds.map((hold) => hold.release()))).not.toContain(false);
  });

  it.each([
    ['ioredis 6', Cluster],
    ['ioredis 5', Cluster5 as unknown as typeof Cluster],
  ])('a Cluster that was handed in is neither closed nor changed (%s)', async (_version, Client) => {
    const given = new Client(seedsOf(servers), { redisOptions: { keyPrefix: 'app:' } });
    await given.ping();
    const locks = await createLocks(redisBackend({ client: given }));
    await locks.lock('mine').acquire();
    expect(await given.exists('holdfast:{mine}')).toBe(1);
    await locks.close();
    expect(given.status).toBe('ready');
    given.disconnect();
  });

  it('a natMap leads to nodes that name themselves otherwise', async () => {
    const node = servers.nodes[0];
    const natMap = Object.fromEntries(
      servers.nodes.map(({ address, port }) => [address, { host: 'localhost', port }]),
    );
    await using locks = await open({ url: `redis+cluster://${node?.address}`, natMap });
    expect(await locks.lock('nat').run(() => 'done')).toBe('done');
  });

  it('a slot that moves under a hold and its waiters loses neither', async () => {
    await using a = await open({ url: servers.url });
    await using b = await open({ url: servers.url });
    const hold = await a.lock('moving').acquire({ ttl: 3000 });
    const waits = Array.from({ length: 3 }, () => b.lock('moving').acquire({ wait: 60_000 }));
    await until(async () => (await a.inspect('moving')).waiters.length === 3);
    const renewed = () => new Promise((resolve) => a.on('renewed', resolve));

    await move(servers, 'holdfast:{moving}', renewed);
    await renewed();

    expect(hold.isHeld()).toBe(true);
    expect(await hold.release()).toBe(true);
    const tokens: bigint[] = [hold.fencingToken];
    for (const wait of waits) {
      const next = await wait;
      tokens.push(next.fencingToken);
      await next.release();
    }
    expect(tokens).toEqual([...tokens].sort((x, y) => (x < y ? -1 : 1)));
  });

  it('a slot that moves back and forth during contention never has two holders', async () => {
    const instances: Locks[] = [await open({ url: servers.url }), await open({ url: servers.url })];
    let inside = 0;
    let most = 0;
    let grants = 0;
    let moving = true;
    const work = instances.flatMap((locks) =>
      Array.from({ length: 4 }, async () => {
        while (moving) {
          await locks.lock('busy').run(
            async (hold) => {
              most = Math.max(most, ++inside);
              grants++;
              await new Promise((resolve) => setTimeout(resolve, 2));
              if (hold.signal.aborted) most = -1;
              inside--;
            },
            { wait: 60_000 },
          );
        }
      }),
    );
    for (let round = 0; round < 6; round++) {
      const before = grants;
      await move(servers, 'holdfast:{busy}');
      await until(() => grants > before + 5, 30_000);
    }
    moving = false;
    await Promise.all(work);
    await Promise.all(instances.map((locks) => locks.close()));
    expect(most).toBe(1);
  }, 120_000);
});

describe('a cluster with replicas', () => {
  let servers: RedisClusterHandle;

  beforeAll(async () => {
    servers = await startRedisCluster({ replicas: 1 });
  });

  afterAll(() => servers.stop());

  it('serves a name again after its master was killed, with a newer token', async () => {
    await using locks = await open({ url: servers.url });
    const owner = await servers.ownerOf('holdfast:{failover}');
    const before = await locks.lock('failover').acquire({ ttl: 2000, renew: false });
    await owner.kill();

    const { value, ms } = await timed(locks.lock('failover').acquire({ wait: 60_000 }));

    expect(value?.fencingToken).toBeGreaterThan(before.fencingToken);
    expect(ms).toBeLessThan(60_000);
    await owner.start();
  }, 90_000);

  it('a master that has gone silent is left for its replica', async () => {
    await using locks = await open({ url: servers.url });
    await (await locks.lock('silent').acquire()).release();
    const owner = await servers.ownerOf('holdfast:{silent}');
    await owner.pause();
    const hold = await locks.lock('silent').acquire({ wait: 60_000 });
    expect(hold.isHeld()).toBe(true);
    await owner.resume();
  }, 90_000);
});

it('a password and the connection of a node are the same for all', async () => {
  const servers = await startRedisCluster({ password: 'secret' });
  await using locks = await open({ url: servers.url });
  await locks.lock('pw').run(() => undefined);
  const given = new Cluster(seedsOf(servers), { redisOptions: { password: 'secret' } });
  await using other = await createLocks(redisBackend({ client: given }));
  await other.lock('pw').run(() => undefined);
  given.disconnect();
  await servers.stop();
});
