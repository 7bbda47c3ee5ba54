import { type EtcdHandle, startEtcd, startEtcdCluster } from '../../servers/etcd.js';
import { askEtcd } from '../../servers/etcd-gateway.js';
import type { ServerNode } from '../../servers/handle.js';
import { assembled } from '../assembled.js';
import { anyNode, killed, onlyNode, paused, type Served } from '../server-faults.js';
import type { ChaosFault, ChaosTarget } from '../target.js';
import { type Wired, Wires, wireFaults } from '../wire-faults.js';

type Running = Served & Wired & { readonly servers: EtcdHandle };

const COMMON = {
  crossProcess: true,
  fairness: 'fifo',
  exclusion: 'promised',
  // etcd rounds up to whole seconds, and to its own least.
  ttl: { min: 1_000, max: 3_000 },
  recoverWithin: 20_000,
} as const;

const PLAIN = { scheme: 'http' } as const;
/** Base64 of a zero byte: as key and range end, every key there is. */
const ALL = { key: 'AA==', range_end: 'AA==' };

const COMPACTED: ChaosFault<Running> = {
  id: 'compaction',
  description: 'the history is compacted to the latest revision, over and over',
  touches: 'everybody',
  lasts: { min: 0, max: 0 },
  async inject({ servers }) {
    const { port } = servers.node;
    const { header } = await askEtcd<{ header: { revision: string } }>(port, PLAIN, '/v3/kv/range', {
      ...ALL,
      count_only: true,
    });
    try {
      await askEtcd(port, PLAIN, '/v3/kv/compaction', { revision: header.revision, physical: true });
    } catch (error) {
      // Nobody has written anything since the last time.
      if (!String(error).includes('has been compacted')) throw error;
    }
    return () => {};
  },
};

const REVOKED: ChaosFault<Running> = {
  id: 'leases-revoked',
  description: 'every lease is revoked by somebody else',
  touches: 'everybody',
  // The keys go with their leases, under their holders: fencing alone can help.
  exclusion: 'fencing-only',
  fairness: 'none',
  lasts: { min: 0, max: 0 },
  async inject({ servers }) {
    const { port } = servers.node;
    const leases = await leasesAt(port);
    await Promise.allSettled(leases.map((ID) => askEtcd(port, PLAIN, '/v3/lease/revoke', { ID })));
    return () => {};
  },
};

const ALL_RESTARTED: ChaosFault<Running> = {
  id: 'all-restarted',
  description: 'every member is killed with −9, and all are started again',
  touches: 'everybody',
  async inject({ servers }) {
    await Promise.all(servers.nodes.map((node) => node.kill()));
    return async () => {
      await Promise.all(servers.nodes.map((node) => node.start()));
    };
  },
};

/** One member. */
export const etcd: ChaosTarget<Running> = {
  ...COMMON,
  id: 'etcd',
  description: '@holdfast/etcd on one member',
  faults: [
    killed('server-killed', 'the server', onlyNode),
    paused('server-paused', 'the server', onlyNode),
    COMPACTED,
    REVOKED,
    ...wireFaults('worker'),
  ],
  start: ({ workers }) => wired(startEtcd({ own: true }), workers),
};

/** Three members. */
export const etcdCluster: ChaosTarget<Running> = {
  ...COMMON,
  id: 'etcd-cluster',
  description: '@holdfast/etcd on three members',
  recoverWithin: 30_000,
  faults: [
    killed('leader-killed', 'the leader', leaderOf),
    killed('member-killed', 'a member', anyNode),
    // etcd 3.4.23, of Debian 12: a leader that stood still past a ttl may revoke live leases as it wakes up
    // (etcd-io/etcd#15247, fixed in 3.4.31 and 3.5.13). No client can see that coming, so fencing alone can help.
    { ...paused('leader-paused', 'the leader', leaderOf), exclusion: 'fencing-only' },
    ALL_RESTARTED,
    COMPACTED,
    REVOKED,
    isolated('leader-isolated', 'the leader', leaderOf),
    isolated('member-isolated', 'a member', anyNode),
    ...wireFaults('worker'),
  ],
  start: ({ workers }) => wired(startEtcdCluster({ own: true, partitionable: true }), workers),
};

function wired(starting: Promise<EtcdHandle>, workers: number): Promise<Running> {
  return assembled(async (own) => {
    const servers = own(await starting);
    const wires = own(await Wires.start(servers.nodes, workers));
    return {
      servers,
      url: (worker: number) => `etcd://${wires.addresses(worker)}`,
      wires: (worker: number) => wires.of(worker),
      leftovers: () => leftovers(servers.node),
    };
  });
}

async function leaderOf({ servers }: Running): Promise<ServerNode> {
  return servers.nodes[await servers.leader()] ?? servers.node;
}

function isolated(id: string, what: string, choose: typeof leaderOf | typeof anyNode): ChaosFault<Running> {
  return {
    id,
    description: `${what} is cut off from its peers, and still reached by its clients`,
    touches: 'everybody',
    async inject(running, context) {
      running.servers.isolate(await choose(running, context));
      return () => running.servers.rejoin();
    },
  };
}

async function leftovers({ port }: ServerNode): Promise<Record<string, number>> {
  const { count = '0' } = await askEtcd<{ count?: string }>(port, PLAIN, '/v3/kv/range', {
    ...ALL,
    count_only: true,
  });
  return { keys: Number(count), leases: (await leasesAt(port)).length };
}

async function leasesAt(port: number): Promise<string[]> {
  const { leases = [] } = await askEtcd<{ leases?: { ID: string }[] }>(port, PLAIN, '/v3/lease/leases', {});
  return leases.map(({ ID }) => ID);
}
