import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { addressesIn, fromEnvironment } from './environment.js';
import type { ProxiedHandle, ServerHandle, ServerNode, StartOptions } from './handle.js';
import { addressList, claimPorts } from './ports.js';
import { startGroup } from './provide.js';
import { type Fronts, fronts } from './proxied.js';
import { askRedis, redisProcess, redisUrl } from './redis-process.js';

export interface RedisSentinelOptions extends StartOptions {
  /** Default 2. */
  readonly replicas?: number;
  /** Default 3; the quorum is their majority. */
  readonly sentinels?: number;
  /** Password of primary and replicas, for clients, replication and sentinels. */
  readonly password?: string;
  /** Silence after which a sentinel counts the primary as down. Milliseconds, default 1000. */
  readonly downAfter?: number;
  /** Directives for the primary and the replicas. */
  readonly config?: Readonly<Record<string, string | number>>;
  /** Every data node and sentinel stands behind a proxy that it announces. Default false. */
  readonly proxied?: boolean;
}

/** A primary with replicas, watched by sentinels. `nodes` are the data nodes, then the sentinels. */
export interface RedisSentinelHandle extends ProxiedHandle {
  /** What the sentinels call it: `holdfast`. */
  readonly primaryName: string;
  /** The data nodes; the first was the primary at the start. Empty for a server from the environment. */
  readonly dataNodes: readonly ServerNode[];
  readonly sentinels: readonly ServerNode[];
  /** Asks the sentinels which data node is the primary now. */
  primary(): Promise<ServerNode>;
  /** Resolves with the new primary when the sentinels name another than `before` and it takes writes. */
  failedOver(before: ServerNode): Promise<ServerNode>;
}

const PRIMARY_NAME = 'holdfast';
const FAILOVER_DEADLINE = 60_000;

/** URL `redis+sentinel://h1,h2,h3/holdfast`. Ready when all replicas are in step and the sentinels know each other. */
export async function startRedisSentinel(options: RedisSentinelOptions = {}): Promise<RedisSentinelHandle> {
  const foreign = fromEnvironment('redis-sentinel', options);
  if (foreign !== undefined) return foreignGroup(foreign);
  const { replicas = 2, sentinels = 3, password, config, proxied = false } = options;
  const data = await claimPorts(1 + replicas);
  const watchers = await claimPorts(sentinels);
  const front = await fronts([...data.numbers, ...watchers.numbers], proxied);
  const knownData = front.known.slice(0, data.numbers.length);
  const knownSentinels = front.known.slice(data.numbers.length);
  const ids = watchers.numbers.map(() => randomBytes(20).toString('hex'));
  const [primary = 0, ...replicaPorts] = knownData;

  const dataSpecs = data.numbers.map((port, index) =>
    redisProcess({
      server: 'redis-sentinel',
      name: index === 0 ? 'redis-primary' : `redis-replica-${index}`,
      port,
      password,
      config,
      lines: [
        'replica-announce-ip 127.0.0.1',
        `replica-announce-port ${knownData[index]}`,
        ...(index === 0 ? [] : [`replicaof 127.0.0.1 ${primary}`]),
      ],
      async ready(client) {
        const info = await client.info('replication');
        const inStep = /^role:master|^master_link_status:up/m.test(info);
        if (!inStep) throw new Error('the replica is not in step yet');
      },
    }),
  );
  const sentinelSpecs = watchers.numbers.map((port, index) =>
    redisProcess({
      server: 'redis-sentinel',
      name: `sentinel-${index + 1}`,
      port,
      url: redisUrl(`127.0.0.1:${port}`),
      sentinel: true,
      lines: [
        `sentinel myid ${ids[index]}`,
        'sentinel announce-ip 127.0.0.1',
        `sentinel announce-port ${knownSentinels[index]}`,
        `sentinel monitor ${PRIMARY_NAME} 127.0.0.1 ${primary} ${Math.floor(sentinels / 2) + 1}`,
        `sentinel down-after-milliseconds ${PRIMARY_NAME} ${options.downAfter ?? 1000}`,
        `sentinel failover-timeout ${PRIMARY_NAME} 5000`,
        ...(password === undefined ? [] : [`sentinel auth-pass ${PRIMARY_NAME} ${password}`]),
        // What they would find out from each other within some seconds.
        ...replicaPorts.map((replica) => `sentinel known-replica ${PRIMARY_NAME} 127.0.0.1 ${replica}`),
        ...ids
          .map(
            (id, other) => `sentinel known-sentinel ${PRIMARY_NAME} 127.0.0.1 ${knownSentinels[other]} ${id}`,
          )
          .filter((_, other) => other !== index),
      ],
      async ready(client) {
        const answer = await client.call('SENTINEL', 'CKQUORUM', PRIMARY_NAME);
        if (!String(answer).startsWith('OK')) throw new Error(String(answer));
      },
    }),
  );

  const handle = await startGroup({
    server: 'redis-sentinel',
    url: redisUrl(addressList(knownSentinels), { scheme: '+sentinel', password, path: `/${PRIMARY_NAME}` }),
    specs: [...dataSpecs, ...sentinelSpecs],
    where: proxied ? 'our-network' : 'anywhere',
    async bringUp(nodes) {
      const [first, ...others] = nodes.slice(0, dataSpecs.length);
      await first?.start();
      await Promise.all(others.map((node) => node.start()));
      await Promise.all(nodes.slice(dataSpecs.length).map((node) => node.start()));
    },
    async release() {
      await front.stop();
      data.release();
      watchers.release();
    },
  });
  return group(handle, front, dataSpecs.length, password);
}

function group(
  handle: ServerHandle,
  front: Fronts,
  dataCount: number,
  password: string | undefined,
): RedisSentinelHandle {
  const dataNodes = handle.nodes.slice(0, dataCount);
  const sentinels = handle.nodes.slice(dataCount);
  const primary = async (): Promise<ServerNode> => {
    const known = await primaryPort(sentinels);
    const node = dataNodes[front.known.indexOf(known)];
    if (node === undefined)
      throw new Error(`The sentinels name a primary that is none of ours: port ${known}.`);
    return node;
  };
  return {
    ...handle,
    proxies: front.proxies,
    primaryName: PRIMARY_NAME,
    dataNodes,
    sentinels,
    primary,
    async failedOver(before) {
      const giveUp = performance.now() + FAILOVER_DEADLINE;
      for (;;) {
        try {
          const now = await primary();
          if (now !== before && (await isPrimary(now, password))) return now;
        } catch (error) {
          if (performance.now() > giveUp) throw error;
        }
        if (performance.now() > giveUp) throw new Error(`No failover within ${FAILOVER_DEADLINE} ms.`);
        await sleep(50);
      }
    },
  };
}

function foreignGroup(handle: ServerHandle): RedisSentinelHandle {
  const primary = () => Promise.reject(new Error('Only the sentinels of this server are known.'));
  return {
    ...handle,
    proxies: [],
    primaryName: addressesIn(handle.url, 0)[0]?.url.replace(/^.*\/([^/?]*).*$/, '$1') ?? '',
    dataNodes: [],
    sentinels: handle.nodes,
    primary,
    failedOver: primary,
  };
}

/** What the most sentinels that answer call the primary's port. */
async function primaryPort(sentinels: readonly ServerNode[]): Promise<number> {
  const answers = await Promise.allSettled(
    sentinels
      .filter((node) => node.state === 'running')
      .map((node) =>
        askRedis(node.port, {}, async (client) => {
          const address = await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', PRIMARY_NAME);
          return Number((address as string[])[1]);
        }),
      ),
  );
  const ports = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
  const votes = (port: number) => ports.filter((other) => other === port).length;
  const [most] = [...ports].sort((a, b) => votes(b) - votes(a));
  if (most === undefined) throw new Error('No sentinel answers.');
  return most;
}

async function isPrimary(node: ServerNode, password: string | undefined): Promise<boolean> {
  return askRedis(node.port, { password }, async (client) =>
    (await client.info('replication')).includes('role:master'),
  );
}
