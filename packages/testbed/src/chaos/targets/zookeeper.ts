import { setTimeout as sleep } from 'node:timers/promises';
import { zooKeeperRequest } from '../../proxy/matchers.js';
import type { FaultProxy } from '../../proxy/proxy.js';
import type { ServerNode } from '../../servers/handle.js';
import { exchange } from '../../servers/probe.js';
import { startZooKeeper, startZooKeeperCluster, type ZooKeeperHandle } from '../../servers/zookeeper.js';
import { endZooKeeperSession, zooKeeperSessions } from '../../servers/zookeeper-sessions.js';
import { assembled } from '../assembled.js';
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

/** As `forceRelease`: the nodes are gone before their holders can know, so that tokens alone keep order. */
const sessionEnded: ChaosFault<Running> = {
  id: 'session-ended',
  description: 'the session of a worker is ended by another client',
  touches: 'everybody',
  exclusion: 'fencing-only',
  async inject({ servers }, { random }) {
    const [first, ...others] = await zooKeeperSessions(servers.node);
    if (first !== undefined) await endZooKeeperSession(servers.node, random.pick([first, ...others]));
    return () => {};
  },
};

const allKilled: ChaosFault<Running> = {
  id: 'all-killed',
  description: 'all servers are killed with −9, and started again',
  touches: 'everybody',
  async inject({ servers }) {
    await Promise.all(servers.nodes.map((node) => node.kill()));
    return async () => void (await Promise.all(servers.nodes.map((node) => node.start())));
  },
};

/** One server. */
export const zookeeper: ChaosTarget<Running> = {
  ...COMMON,
  id: 'zookeeper',
  description: '@holdfast/zookeeper on one server, sessions of two seconds',
  faults: [
    killed('server-killed', 'the server', onlyNode),
    paused('server-paused', 'the server', onlyNode),
    ...wireFaults('worker'),
    onWires('requests-held', 'one worker hears the server, which hears nothing of it', (wires) =>
      wires.map((wire) => wire.blackHole('up')),
    ),
    onWires('create-answers-dropped', 'one worker: nodes are made, and it is not told', (wires) =>
      wires.map((wire) => wire.dropAnswerTo(zooKeeperRequest('create', '/locks/'), { times: 4 })),
    ),
    onWires('delete-answers-dropped', 'one worker: nodes are deleted, and it is not told', (wires) =>
      wires.map((wire) => wire.dropAnswerTo(zooKeeperRequest('delete', '/locks/'), { times: 4 })),
    ),
    onWires('exists-answers-dropped', 'one worker: nor is it told when it looks for its node', (wires) =>
      wires.flatMap((wire) =>
        (['create', 'exists'] as const).map((operation) =>
          wire.dropAnswerTo(zooKeeperRequest(operation, '/locks/'), { times: 4 }),
        ),
      ),
    ),
    sessionEnded,
  ],
  start: ({ workers }) => wired(startZooKeeper({ own: true }), workers),
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
    blackholed('follower-blackholed', 'a follower', followerOf),
    blackholed('leader-blackholed', 'the leader', leaderOf),
    allKilled,
    ...wireFaults('worker'),
    sessionEnded,
    onWires('server-silent', 'one worker hears nothing from its server, and may use the others', (wires) =>
      wires.filter(({ connections }) => connections > 0).map((wire) => wire.blackHole()),
    ),
  ],
  start: ({ workers, namespaces }) =>
    wired(
      startZooKeeperCluster({
        own: true,
        // A follower goes on answering reads for this many ticks without its leader: here past the end of sessions.
        ...(namespaces === true
          ? { partitionable: 'namespaces', config: { syncLimit: 40 } }
          : { partitionable: 'proxies' }),
      }),
      workers,
    ),
};

function wired(starting: Promise<ZooKeeperHandle>, workers: number): Promise<Running> {
  return assembled(async (own) => {
    const servers = own(await starting);
    const wires = own(await Wires.start(servers.nodes, workers));
    // The root that stays is made before anything is counted.
    await using locks = await openLocks('zookeeper', urlOf(servers.connectString));
    await locks.lock('root').run(() => {});
    return {
      servers,
      url: (worker: number) => urlOf(wires.addresses(worker)),
      wires: (worker: number) => wires.of(worker),
      leftovers: () => leftovers(servers.node),
    };
  });
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

/** A proxy closes nothing either, but it takes what it is sent. Here not a packet passes. */
function blackholed(id: string, what: string, choose: typeof leaderOf): ChaosFault<Running> {
  return {
    ...isolated(id, what, choose),
    description: `${what} lives in a network namespace that is unplugged from its peers', and is still reached by its clients`,
    namespaces: true,
    lasts: { min: 1.25 * SESSION, max: 3 * SESSION },
  };
}

function onWires(
  id: string,
  description: string,
  strike: (wires: readonly FaultProxy[]) => readonly { heal(): void }[],
): ChaosFault<Running> {
  return {
    id,
    description,
    touches: 'worker',
    async inject(running, { victim }) {
      const faults = strike(running.wires(victim.index));
      return () => {
        for (const fault of faults) fault.heal();
      };
    },
  };
}

/** As the server itself counts them, once it serves: one that was cut off is a while on its way back. */
async function leftovers(node: ServerNode): Promise<Record<string, number>> {
  const giveUp = performance.now() + 30_000;
  for (;;) {
    try {
      return await count(node);
    } catch (error) {
      if (performance.now() > giveUp) throw error;
      await sleep(100);
    }
  }
}

async function count({ port, host }: ServerNode): Promise<Record<string, number>> {
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
