import { startProxy } from '../proxy/proxy.js';
import { fromEnvironment } from './environment.js';
import type { PartitionableHandle, ServerHandle, ServerName, StartOptions } from './handle.js';
import { claimPorts } from './ports.js';
import { exchange } from './probe.js';
import { startGroup } from './provide.js';
import type { ProcessSpec } from './spec.js';
import { type Links, namespaceLinks, noLinks, type PeerPorts, zooKeeperLinks } from './zookeeper-links.js';

export interface ZooKeeperOptions extends StartOptions {
  /** Milliseconds of a tick. Sessions last 2 to 20 ticks. Default 250, so sessions of 500 ms to 5 s. */
  readonly tickTime?: number;
  /** Further lines of zoo.cfg, such as `{ maxSessionTimeout: 40000 }`. */
  readonly config?: Readonly<Record<string, string | number>>;
}

export interface ZooKeeperClusterOptions extends ZooKeeperOptions {
  /** Default 3. */
  readonly members?: number;
  /**
   * `isolate` works. `proxies` (or true): members reach each other's quorum and election ports through proxies, which
   * fall silent. `namespaces`: each lives in a network namespace of its own, and no packet passes; where `noNamespaces`
   * has nothing against it. Default false.
   */
  readonly partitionable?: boolean | 'proxies' | 'namespaces';
}

export interface ZooKeeperHandle extends PartitionableHandle {
  /** `h1:p1,h2:p2`, as node-zookeeper-client takes it. */
  readonly connectString: string;
  /** The member that leads now, by node index. Rejects while there is none. */
  leader(): Promise<number>;
}

/** One server. URL `zookeeper://127.0.0.1:2181`. */
export function startZooKeeper(options: ZooKeeperOptions = {}): Promise<ZooKeeperHandle> {
  return start('zookeeper', { ...options, members: 1 }, options);
}

/** URL `zookeeper://h1,h2,h3`. Ready when there is a leader and every member serves. */
export function startZooKeeperCluster(options: ZooKeeperClusterOptions = {}): Promise<ZooKeeperHandle> {
  return start('zookeeper-cluster', options, options);
}

async function start(
  server: ServerName,
  options: ZooKeeperClusterOptions,
  asked: ZooKeeperOptions,
): Promise<ZooKeeperHandle> {
  const foreign = fromEnvironment(server, asked);
  if (foreign !== undefined) return withMembers(foreign, noLinks([]));
  const { members = 3, partitionable = false } = options;
  const clients = await claimPorts(members);
  const peers = await claimPorts(members * 2);
  const addresses = clients.numbers.map((_, index) => ({
    quorum: peers.numbers[index] ?? 0,
    election: peers.numbers[index + members] ?? 0,
  }));
  const links = await linksOf(partitionable, addresses, clients.numbers);
  const { inside = (_: number, command: readonly [string, ...string[]]) => command } = links;
  const waysIn = clients.numbers.map((port, index) => links.wayIn?.(index) ?? port);

  const specs = clients.numbers.map((clientPort, index): ProcessSpec => {
    const name = `zookeeper-${index + 1}`;
    const port = waysIn[index] ?? clientPort;
    return {
      server,
      name,
      port,
      morePorts: [addresses[index]?.quorum ?? 0, addresses[index]?.election ?? 0],
      url: `zookeeper://127.0.0.1:${port}`,
      files: ({ home, bind }) => ({
        'zoo.cfg': configuration(
          {
            dataDir: `${home}/data`,
            clientPort,
            clientPortAddress: links.inside === undefined ? bind : '0.0.0.0',
            tickTime: options.tickTime ?? 250,
            initLimit: 40,
            syncLimit: 8,
            maxClientCnxns: 0,
            'admin.enableServer': 'false',
            '4lw.commands.whitelist': 'srvr,ruok,mntr,cons,dump,wchs',
            ...options.config,
          },
          members === 1 ? [] : links.seenFrom(index),
        ),
        'data/myid': `${index + 1}\n`,
      }),
      command: ({ home }) =>
        inside(index, [
          'java',
          ...JAVA_OPTIONS,
          '-cp',
          '/usr/share/java/*',
          'org.apache.zookeeper.server.quorum.QuorumPeerMain',
          `${home}/zoo.cfg`,
        ]),
      docker: {
        // The official image keeps its jars elsewhere, Debian's where we look.
        command: ({ home }) => [
          'sh',
          '-c',
          `exec java ${JAVA_OPTIONS.join(' ')} -cp "$(echo /apache-zookeeper-*/lib)/*:/usr/share/java/*" ` +
            `org.apache.zookeeper.server.quorum.QuorumPeerMain ${home}/zoo.cfg`,
        ],
      },
      ready: async () => void (await modeOf(port)),
    };
  });

  const handle = await startGroup({
    server,
    url: `zookeeper://${waysIn.map((port) => `127.0.0.1:${port}`).join(',')}`,
    specs,
    where: links.inside !== undefined ? 'local' : partitionable === false ? 'anywhere' : 'our-network',
    async release() {
      await links.stop();
      clients.release();
      peers.release();
    },
  });
  return withMembers(handle, links);
}

function linksOf(
  how: ZooKeeperClusterOptions['partitionable'],
  members: readonly PeerPorts[],
  clientPorts: readonly number[],
): Promise<Links> | Links {
  if (how === 'namespaces') return namespaceLinks(members, clientPorts, startProxy);
  return how === false || how === undefined ? noLinks(members) : zooKeeperLinks(members, startProxy);
}

const JAVA_OPTIONS = [
  '-XX:+UseSerialGC',
  '-XX:TieredStopAtLevel=1',
  '-Xshare:auto',
  // Otherwise the virtual machine leaves files in the temporary folder.
  '-XX:-UsePerfData',
  '-Xmx192m',
  // What a kill of the process loses is what the server had not written, and it writes before it answers.
  '-Dzookeeper.forceSync=no',
  '-Dzookeeper.preAllocSize=256',
];

function configuration(settings: Readonly<Record<string, string | number>>, more: readonly string[]): string {
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  return `${[...lines, ...more].join('\n')}\n`;
}

function withMembers(handle: ServerHandle, links: Links): ZooKeeperHandle {
  return {
    ...handle,
    connectString: handle.nodes.map((node) => node.address).join(','),
    async leader() {
      const modes = await Promise.allSettled(handle.nodes.map((node) => modeOf(node.port, node.host)));
      const index = modes.findIndex((mode) => mode.status === 'fulfilled' && mode.value !== 'follower');
      if (index === -1) throw new Error('There is no leader now.');
      return index;
    },
    isolate: (node) => links.isolate(handle.nodes.indexOf(node)),
    rejoin: () => links.rejoin(),
  };
}

/** `leader`, `follower` or `standalone`. Rejects while the server does not serve. */
async function modeOf(port: number, host = '127.0.0.1'): Promise<string> {
  let mode: string | undefined;
  await exchange(port, {
    host,
    send: 'srvr',
    accept(received) {
      mode = /^Mode: (\w+)$/m.exec(received.toString('latin1'))?.[1];
      return mode !== undefined;
    },
  });
  if (mode === undefined) throw new Error('the server did not say its mode');
  return mode;
}
