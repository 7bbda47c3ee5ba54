import type { ServerNode } from '../../servers/handle.js';
import { exchange } from '../../servers/probe.js';
import { startZooKeeper, startZooKeeperCluster, type ZooKeeperHandle } from '../../servers/zookeeper.js';
import { anyNode, killed, onlyNode, paused, type Served } from '../server-faults.js';
import type { ChaosFault, ChaosTarget } from '../target.js';
import { type Wired, Wires, wireFaults } from '../wire-faults.js';
import { openLocks } from './locks.js';

type Running = Served & Wired & { readonly servers: ZooKeeperHandle };

/** ms: what a dead holder blocks. Eight of the testbed's ticks. */
const SESSION = 2_000;

const COMMON = {
  crossProcess: true,
  fairness: 'fifo',
  exclusion: 'promised',
  ttl: { min: 500, max: 2_500 },
  recoverWithin: 20_000,
} as const;

/** One server. */
export const zookeeper: ChaosTarget<Running> = {
  ...COMMON,
  id: 'zookeeper',
  description: '@holdfast/zookeeper on one server, sessions of two seconds',
  faults: [
    killed('server-killed', 'the server', onlyNode),
    paused('server-paused', 'the server', onlyNode),
    ...wireFaults('worker'),
  ],
  start: async ({ workers }) => wired(await startZooKeeper({ own: true }), workers),
};

/** Three servers. */
export const zookeeperCluster: ChaosTarget<Running> = {
  ...COMMON,
  id: 'zookeeper-cluster',
  description: '@holdfast/zookeeper on three servers, sessions of two seconds',
  recoverWithin: 40_000,
  faults: [
    killed('leader-killed', 'the leader', leaderOf),
    killed('member-killed', 'a member', anyNode),
    paused('leader-paused', 'the leader', leaderOf),
    isolated('leader-isolated', 'the leader', leaderOf),
    isolated('follower-isolated', 'a follower', followerOf),
    ...wireFaults('worker').filter(({ id }) => id === 'partition' || id === 'answers-dropped'),
  ],
  start: async ({ workers }) =>
    wired(await startZooKeeperCluster({ own: true, partitionable: true }), workers),
};

async function wired(servers: ZooKeeperHandle, workers: number): Promise<Running> {
  const wires = await Wires.start(servers.nodes, workers);
  // The root that stays is made before anything is counted.
  const locks = await openLocks('zookeeper', urlOf(servers.connectString));
  await locks.lock('root').run(() => {});
  await locks.close();
  return {
    servers,
    url: (worker) => urlOf(wires.addresses(worker)),
    wires: (worker) => wires.of(worker),
    leftovers: () => leftovers(servers.node),
    async stop() {
      await wires[Symbol.asyncDispose]();
      await servers.stop();
    },
  };
}

function urlOf(addresses: string): string {
  return `zookeeper://${addresses}?sessionTimeout=${SESSION}ms`;
}

async function leaderOf({ servers }: Running): Promise<ServerNode> {
  return servers.nodes[await servers.leader()] ?? servers.node;
}

async function followerOf({ servers }: Running): Promise<ServerNode> {
  const leader = await servers.leader();
  return servers.nodes.find((_, index) => index !== leader) ?? servers.node;
}

function isolated(id: string, what: string, choose: typeof leaderOf): ChaosFault<Running> {
  return {
    id,
    description: `${what} is cut off from its peers, and still reached by its clients`,
    touches: 'everybody',
    async inject(running) {
      running.servers.isolate(await choose(running));
      return () => running.servers.rejoin();
    },
  };
}

/** As the server itself counts them. */
async function leftovers({ port, host }: ServerNode): Promise<Record<string, number>> {
  const answer = await exchange(port, {
    host,
    send: 'mntr',
    timeout: 5_000,
    accept: (received) => received.includes('zk_num_alive_connections') && received.at(-1) === 0x0a,
  });
  const value = (key: string): number =>
    Number(new RegExp(`^${key}\\t(\\d+)`, 'm').exec(answer.toString())?.[1]);
  return {
    nodes: value('zk_znode_count'),
    ephemerals: value('zk_ephemerals_count'),
    watches: value('zk_watch_count'),
    // Without the one that asks.
    connections: value('zk_num_alive_connections'),
  };
}
