import type { Random } from '../../random/random.js';
import type { ServerNode } from '../../servers/handle.js';
import { askRedis } from '../../servers/redis-process.js';
import { startRedisQuorum } from '../../servers/redis-quorum.js';
import { assembled } from '../assembled.js';
import type { Served } from '../server-faults.js';
import type { ChaosFault, ChaosTarget, Heal } from '../target.js';
import { type Wired, Wires, wireFaults } from '../wire-faults.js';
import { leftovers } from './redis-keys.js';

/** `wires(worker)` has a proxy for each server, in the servers' order. */
interface Running extends Served, Wired {
  readonly workers: number;
}

const SERVERS = 5;

/** ms: the longest ttl of any client, and so the time for which a server that has started keeps out of votes. */
const MAX_TTL = 2_000;

/** How many servers it can be. */
const SHARES = { minority: [1, 2], majority: [3, 4, 5] } as const;

type Share = keyof typeof SHARES;

/** Five servers that know nothing of each other, and keep nothing on disk: one that was killed comes back empty. */
export const redisQuorum: ChaosTarget<Running> = {
  id: 'redis-quorum',
  description: '@holdfast/redis on a quorum of five servers that keep nothing on disk',
  crossProcess: true,
  fairness: 'none',
  exclusion: 'promised',
  ttl: { min: 400, max: 1_500 },
  // A dead holder's ttl, then the time for which servers that came back keep out, then luck: nobody is served in turn.
  recoverWithin: 20_000,
  faults: [
    ...both('killed', 'killed with −9, and started again, empty', async (_, nodes) => {
      await eachOf(nodes, (node) => node.kill());
      return () => eachOf(nodes, (node) => node.start());
    }),
    ...both('paused', 'stopped past the ttl, and continued', async (_, nodes) => {
      await eachOf(nodes, (node) => node.pause());
      return () => eachOf(nodes, (node) => node.resume());
    }),
    ...both(
      'cut-off',
      'out of reach for everybody, past the ttl, without a connection being closed',
      (running, nodes) => {
        const holes = wiresTo(running, nodes).map((wire) => wire.blackHole());
        return () => {
          for (const hole of holes) hole.heal();
        };
      },
    ),
    {
      ...onShare('minority', 'emptied', 'emptied while they run', async (_, nodes) => {
        await eachOf(nodes, ({ port }) => askRedis(port, {}, (client) => client.flushall()));
        return () => {};
      }),
      lasts: { min: 0, max: 0 },
    },
    ...wireFaults('worker'),
  ],
  start: ({ workers }) =>
    assembled(async (own) => {
      const servers = own(await startRedisQuorum({ own: true, servers: SERVERS }));
      const wires = own(await Wires.start(servers.nodes, workers));
      return {
        servers,
        workers,
        url: (worker: number) => `redis+quorum://${wires.addresses(worker)}?maxTtl=${MAX_TTL}ms`,
        wires: (worker: number) => wires.of(worker),
        leftovers: () => leftovers(servers.nodes),
      };
    }),
};

type Strike = (running: Running, nodes: readonly ServerNode[]) => Promise<Heal> | Heal;

function both(id: string, what: string, strike: Strike): ChaosFault<Running>[] {
  return [onShare('minority', id, what, strike), onShare('majority', id, what, strike)];
}

function onShare(share: Share, id: string, what: string, strike: Strike): ChaosFault<Running> {
  return {
    id: `${share}-${id}`,
    description: `${SHARES[share].join(' or ')} of the ${SERVERS} servers are ${what}`,
    touches: 'everybody',
    inject: async (running, { random }) =>
      strike(running, drawn(running.servers.nodes, random.pick(SHARES[share]), random)),
  };
}

function drawn(nodes: readonly ServerNode[], count: number, random: Random): readonly ServerNode[] {
  const left = [...nodes];
  while (left.length > count) left.splice(random.below(left.length), 1);
  return left;
}

/** Every worker's way to these servers. */
function wiresTo(
  { servers, workers, wires }: Running,
  nodes: readonly ServerNode[],
): ReturnType<Running['wires']> {
  return Array.from({ length: workers }, (_, worker) =>
    wires(worker).filter((_wire, index) => nodes.some((node) => node === servers.nodes[index])),
  ).flat();
}

async function eachOf(
  nodes: readonly ServerNode[],
  act: (node: ServerNode) => Promise<unknown>,
): Promise<void> {
  await Promise.all(nodes.map(act));
}
