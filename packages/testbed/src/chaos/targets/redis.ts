import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { ServerNode } from '../../servers/handle.js';
import { startRedis } from '../../servers/redis.js';
import { type RedisClusterHandle, startRedisCluster } from '../../servers/redis-cluster.js';
import { askRedis } from '../../servers/redis-process.js';
import { type RedisSentinelHandle, startRedisSentinel } from '../../servers/redis-sentinel.js';
import { assembled } from '../assembled.js';
import { anyNode, killed, onlyNode, paused, type Served } from '../server-faults.js';
import type { ChaosFault, ChaosTarget } from '../target.js';
import { type Wired, Wires, wireFaults } from '../wire-faults.js';
import { leftovers } from './redis-keys.js';
import { slotMoved } from './redis-slots.js';

type Running = Served & Wired;

/** Every write is on the disk before it is answered: what is granted survives a kill. */
const DURABLE = { appendonly: 'yes', appendfsync: 'always' } as const;

const COMMON = {
  crossProcess: true,
  fairness: 'fifo',
  exclusion: 'promised',
  ttl: { min: 400, max: 1_500 },
  recoverWithin: 12_000,
} as const;

const AT_ONCE = { min: 0, max: 0 };

/** ms of silence after which sentinels take the primary for dead: longer than any fault that is no failover. */
const DOWN_AFTER = 4_000;

/** Things that people do to Redis servers, on every one that `mastersOf` names. */
function commands<R extends Served>(
  mastersOf: (running: R) => Promise<readonly ServerNode[]> | readonly ServerNode[],
): readonly ChaosFault<R>[] {
  const command = (id: string, what: string, run: (client: Redis) => Promise<unknown>): ChaosFault<R> => ({
    id,
    description: `${what}, in the midst of it`,
    touches: 'everybody',
    lasts: AT_ONCE,
    async inject(running) {
      await Promise.all((await mastersOf(running)).map(({ port }) => askRedis(port, {}, run)));
      return () => {};
    },
  });
  return [
    command('script-flush', 'the scripts are forgotten', (client) => client.script('FLUSH')),
    command('clients-killed', 'the server closes every connection of every worker', async (client) => {
      // By name: a sentinel that loses its own may take the server for dead.
      const clients = String(await client.client('LIST')).matchAll(/^id=(\d+) .*\bname=holdfast/gm);
      await Promise.all([...clients].map(([, id = '']) => client.call('CLIENT', 'KILL', 'ID', id)));
    }),
    // The locks go with everything else, under their holders: fencing alone can help.
    {
      ...command('flushall', 'all data are deleted', (client) => client.flushall()),
      exclusion: 'fencing-only',
      fairness: 'none',
    },
  ];
}

/** One server. */
export const redis: ChaosTarget<Running> = {
  ...COMMON,
  id: 'redis',
  description: '@holdfast/redis on one server that syncs every write',
  faults: [
    killed('server-killed', 'the server', onlyNode),
    paused('server-paused', 'the server', onlyNode),
    ...commands<Running>(({ servers }) => servers.nodes),
    ...wireFaults('worker'),
  ],
  start: ({ workers }) =>
    assembled(async (own) => {
      const servers = own(await startRedis({ own: true, persistence: 'aof' }));
      const wires = own(await Wires.start(servers.nodes, workers));
      return {
        servers,
        url: (worker: number) => `redis://${wires.addresses(worker)}`,
        wires: (worker: number) => wires.of(worker),
        leftovers: () => leftovers(servers.nodes),
      };
    }),
};

/** The same, with ttls for which a release hands the lock over to the next waiter: below 5 s it wakes it. */
export const redisHandOver: ChaosTarget<Running> = {
  ...redis,
  id: 'redis-hand-over',
  description: '@holdfast/redis on one server, with ttls that are long enough for locks to be handed over',
  recoverWithin: 25_000,
  ttl: { min: 5_000, max: 7_000 },
};

/** A primary with two replicas and three sentinels. */
export const redisSentinel: ChaosTarget<Running & { readonly servers: RedisSentinelHandle }> = {
  ...COMMON,
  id: 'redis-sentinel',
  description: '@holdfast/redis on a primary with two replicas, watched by three sentinels',
  // Finding the new primary comes on top of what the lock needs.
  recoverWithin: 25_000,
  faults: [
    {
      id: 'failover',
      description:
        'the primary is killed with −9, a replica takes over, the old primary comes back as a replica',
      touches: 'everybody',
      exclusion: 'fencing-only',
      fairness: 'none',
      async inject({ servers }) {
        const primary = await servers.primary();
        await primary.kill();
        await servers.failedOver(primary);
        return () => primary.start();
      },
    },
    {
      id: 'failover-behind',
      description:
        'the replicas are cut off and stand still for a second, then the primary is killed: what it granted meanwhile is lost',
      touches: 'everybody',
      exclusion: 'fencing-only',
      fairness: 'none',
      async inject({ servers }) {
        const primary = await servers.primary();
        const replicas = servers.dataNodes.filter((node) => node !== primary);
        await Promise.all(replicas.map((node) => node.pause()));
        // Or what is on its way to them would still reach them.
        await askRedis(primary.port, {}, (client) => client.call('CLIENT', 'KILL', 'TYPE', 'replica'));
        await sleep(1000);
        await primary.kill();
        await Promise.all(replicas.map((node) => node.resume()));
        await servers.failedOver(primary);
        return () => primary.start();
      },
    },
    killed('sentinel-killed', 'a sentinel', ({ servers }, { random }) => {
      const [first, ...others] = servers.sentinels;
      return first === undefined ? servers.node : random.pick([first, ...others]);
    }),
    ...commands<Running & { readonly servers: RedisSentinelHandle }>(async ({ servers }) => [
      await servers.primary(),
    ]),
    ...wireFaults('everybody').filter(({ id }) => id !== 'partition' && id !== 'refused'),
  ],
  async start() {
    const servers = await startRedisSentinel({ own: true, proxied: true, downAfter: DOWN_AFTER });
    return {
      servers,
      url: () => servers.url,
      wires: () => servers.proxies.slice(0, servers.dataNodes.length),
      leftovers: async () => leftovers([await servers.primary()]),
      stop: () => servers.stop(),
    };
  },
};

/** Three primaries. */
export const redisCluster: ChaosTarget<Running & { readonly servers: RedisClusterHandle }> = {
  ...COMMON,
  id: 'redis-cluster',
  description: '@holdfast/redis on a cluster of three primaries that sync every write',
  recoverWithin: 20_000,
  faults: [
    killed('node-killed', 'a node', anyNode),
    paused('node-paused', 'a node', anyNode),
    slotMoved,
    ...commands<Running>(({ servers }) => servers.nodes),
    ...wireFaults('everybody'),
  ],
  async start() {
    const servers = await startRedisCluster({ own: true, proxied: true, config: DURABLE });
    return {
      servers,
      url: () => servers.url,
      wires: () => servers.proxies,
      leftovers: () => leftovers(servers.nodes),
      stop: () => servers.stop(),
    };
  },
};
