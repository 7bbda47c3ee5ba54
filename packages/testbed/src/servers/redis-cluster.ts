import { setTimeout as sleep } from 'node:timers/promises';
import { fromEnvironment } from './environment.js';
import type { ProxiedHandle, ServerHandle, ServerNode, StartOptions } from './handle.js';
import type { ManagedNode } from './node.js';
import { addressList, claimPorts } from './ports.js';
import { startGroup } from './provide.js';
import { fronts } from './proxied.js';
import { askRedis, redisProcess, redisUrl } from './redis-process.js';

export interface RedisClusterOptions extends StartOptions {
  /** Default 3, the fewest that Redis accepts. */
  readonly primaries?: number;
  /** Replicas of each primary. Default 0. */
  readonly replicas?: number;
  readonly password?: string;
  /** Milliseconds of silence after which a node counts as failing. Default 1000. */
  readonly nodeTimeout?: number;
  readonly config?: Readonly<Record<string, string | number>>;
  /** Every node stands behind a proxy that it announces to clients; the bus between nodes does not. */
  readonly proxied?: boolean;
}

/** A cluster; the first `primaries` nodes own the slots, in order, at the start. */
export interface RedisClusterHandle extends ProxiedHandle {
  /** The node that owns the key's slot now. */
  ownerOf(key: string): Promise<ServerNode>;
}

const SLOTS = 16_384;
const FORMING_DEADLINE = 30_000;

/** URL `redis+cluster://h1,h2,h3`. Ready when every node knows all others and says `cluster_state:ok`. */
export async function startRedisCluster(options: RedisClusterOptions = {}): Promise<RedisClusterHandle> {
  const foreign = fromEnvironment('redis-cluster', options);
  if (foreign !== undefined)
    return withOwners(
      foreign,
      [],
      foreign.nodes.map((node) => node.port),
      undefined,
    );
  const { primaries = 3, replicas = 0, password, config, proxied = false } = options;
  const ports = await claimPorts(primaries * (1 + replicas));
  const buses = await claimPorts(ports.numbers.length);
  const front = await fronts(ports.numbers, proxied);
  const specs = ports.numbers.map((port, index) =>
    redisProcess({
      server: 'redis-cluster',
      name: `redis-${index + 1}`,
      port,
      morePorts: [buses.numbers[index] ?? 0],
      password,
      config,
      lines: [
        'cluster-enabled yes',
        'cluster-config-file nodes.conf',
        `cluster-node-timeout ${options.nodeTimeout ?? 1000}`,
        `cluster-port ${buses.numbers[index]}`,
        'cluster-announce-ip 127.0.0.1',
        `cluster-announce-port ${front.known[index]}`,
        `cluster-announce-bus-port ${buses.numbers[index]}`,
      ],
    }),
  );
  const handle = await startGroup({
    server: 'redis-cluster',
    url: redisUrl(addressList(front.known), { scheme: '+cluster', password }),
    specs,
    async bringUp(nodes) {
      await Promise.all(nodes.map((node) => node.start()));
      await form(nodes, buses.numbers, primaries, password);
    },
    async release() {
      await front.stop();
      ports.release();
      buses.release();
    },
  });
  return { ...withOwners(handle, front.proxies, front.known, password) };
}

function withOwners(
  handle: ServerHandle,
  proxies: ProxiedHandle['proxies'],
  known: readonly number[],
  password: string | undefined,
): RedisClusterHandle {
  return {
    ...handle,
    proxies,
    async ownerOf(key) {
      const asked = handle.nodes.find((node) => node.state === 'running') ?? handle.node;
      const port = await askRedis(asked.port, { password }, async (client) => {
        const slot = (await client.call('CLUSTER', 'KEYSLOT', key)) as number;
        const ranges = (await client.call('CLUSTER', 'SLOTS')) as [number, number, [string, number]][];
        return ranges.find(([from, to]) => slot >= from && slot <= to)?.[2][1];
      });
      const node = port === undefined ? undefined : handle.nodes[known.indexOf(port)];
      if (node === undefined) throw new Error(`No node of ours owns the slot of ${key}.`);
      return node;
    },
  };
}

/** Makes a cluster of empty nodes: slots to the primaries in equal ranges, replicas to them in turn. */
async function form(
  nodes: readonly ManagedNode[],
  buses: readonly number[],
  primaries: number,
  password: string | undefined,
): Promise<void> {
  const ask = <Answer>(node: ManagedNode, ...command: (string | number)[]): Promise<Answer> =>
    askRedis(node.port, { password }, (client) => client.call('CLUSTER', ...command) as Promise<Answer>);
  const ids = await Promise.all(nodes.map((node) => ask<string>(node, 'MYID')));
  const from = (index: number) => Math.ceil((index * SLOTS) / primaries);
  await Promise.all(
    nodes.map(async (node, index) => {
      if (index >= primaries) return;
      await ask(node, 'ADDSLOTSRANGE', from(index), from(index + 1) - 1);
      // Different from the start, so that no two nodes have to settle whose turn is first.
      await ask(node, 'SET-CONFIG-EPOCH', index + 1);
    }),
  );
  // Everyone meets everyone: gossip would get there as well, some seconds later.
  await Promise.all(
    nodes.flatMap((node, index) =>
      nodes
        .slice(index + 1)
        .map((other, at) => ask(node, 'MEET', '127.0.0.1', other.port, buses[index + 1 + at] ?? 0)),
    ),
  );
  const giveUp = performance.now() + FORMING_DEADLINE;
  await Promise.all(
    nodes.map(async (node, index) => {
      const primaryId = ids[index % primaries] ?? '';
      if (index >= primaries) await until(giveUp, async () => void (await ask(node, 'REPLICATE', primaryId)));
      await until(giveUp, async () => {
        const info = await ask<string>(node, 'INFO');
        const formed =
          info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${nodes.length}\r`);
        if (!formed) throw new Error(`The cluster has not formed:\n${info}`);
      });
    }),
  );
}

async function until(giveUp: number, attempt: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > giveUp) throw error;
      await sleep(50);
    }
  }
}
