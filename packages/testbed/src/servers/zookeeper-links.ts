import type { FaultProxy, ProxyOptions } from '../proxy/proxy.js';
import { startNetwork } from './namespaces.js';

/** Where a member of an ensemble listens for its peers. */
export interface PeerPorts {
  readonly quorum: number;
  readonly election: number;
}

/** How the members of an ensemble reach one another, and are reached. */
export interface Links {
  /** The port on this machine's loopback address at which clients reach the member; default its own. */
  readonly wayIn?: (index: number) => number;
  /** The command that runs `command` where the member lives; default `command`. */
  readonly inside?: (
    index: number,
    command: readonly [string, ...string[]],
  ) => readonly [program: string, ...args: string[]];
  /** The `server.N` lines of the member with this index. */
  seenFrom(index: number): readonly string[];
  isolate(index: number): void;
  rejoin(): Promise<void>;
  stop(): Promise<void>;
}

/** Members reach each other directly and cannot be cut apart. */
export function noLinks(members: readonly PeerPorts[]): Links {
  return {
    seenFrom: () => members.map((ports, index) => serverLine(index, ports)),
    isolate() {
      throw new Error('Only a group started with `partitionable: true` can be cut apart.');
    },
    rejoin: async () => undefined,
    stop: async () => undefined,
  };
}

/** A proxy for each ordered pair of members and each port, so that whatever passes can be told by both its ends. */
export async function zooKeeperLinks(
  members: readonly PeerPorts[],
  startProxy: (options: ProxyOptions) => Promise<FaultProxy>,
): Promise<Links> {
  interface Link {
    readonly from: number;
    readonly to: number;
    readonly quorum: FaultProxy;
    readonly election: FaultProxy;
  }
  const electionPorts = new Map<string, number>();
  const pairs = members
    .flatMap((_, from) => members.map((_, to) => ({ from, to })))
    .filter((p) => p.from !== p.to);
  const links = await Promise.all(
    pairs.map(async ({ from, to }): Promise<Link> => {
      const own = members[from];
      const target = members[to];
      if (own === undefined || target === undefined) throw new Error('No such member.');
      const [quorum, election] = await Promise.all([
        startProxy({ target: { host: '127.0.0.1', port: target.quorum } }),
        startProxy({
          target: { host: '127.0.0.1', port: target.election },
          // A member with a lower id is called back at the address that it gives here: it must be a proxy's as well.
          // The numbers have as many digits, so the message keeps its length.
          rewriteOpening: (opening) =>
            replace(opening, `127.0.0.1:${own.election}`, `127.0.0.1:${electionPorts.get(`${to}→${from}`)}`),
        }),
      ]);
      electionPorts.set(`${from}→${to}`, election.port);
      return { from, to, quorum, election };
    }),
  );
  const proxies = links.flatMap((link) => [link.quorum, link.election]);
  return {
    seenFrom: (index) =>
      members.map((ports, to) => {
        const link = links.find((candidate) => candidate.from === index && candidate.to === to);
        return serverLine(
          to,
          link === undefined ? ports : { quorum: link.quorum.port, election: link.election.port },
        );
      }),
    isolate(index) {
      for (const link of links) {
        if (link.from !== index && link.to !== index) continue;
        link.quorum.blackHole();
        link.election.blackHole();
      }
    },
    async rejoin() {
      await Promise.all(proxies.map((proxy) => proxy.heal()));
    },
    async stop() {
      await Promise.all(proxies.map((proxy) => proxy.stop()));
    },
  };
}

/** Each member lives in a network namespace of its own: see {@link Network}. Clients come in by proxies. */
export async function namespaceLinks(
  members: readonly PeerPorts[],
  clientPorts: readonly number[],
  startProxy: (options: ProxyOptions) => Promise<FaultProxy>,
): Promise<Links> {
  const network = await startNetwork(members.length);
  const waysIn = await Promise.all(
    clientPorts.map((port, index) => startProxy({ target: { host: network.clientAddress(index), port } })),
  );
  return {
    wayIn: (index) => waysIn[index]?.port ?? 0,
    inside: (index, command) => network.inside(index, command),
    seenFrom: () => members.map((ports, index) => serverLine(index, ports, network.peerAddress(index))),
    isolate: (index) => network.cut(index),
    rejoin: async () => network.join(),
    async stop() {
      await Promise.all(waysIn.map((proxy) => proxy.stop()));
      await network.stop();
    },
  };
}

function serverLine(index: number, { quorum, election }: PeerPorts, host = '127.0.0.1'): string {
  return `server.${index + 1}=${host}:${quorum}:${election}`;
}

function replace(bytes: Buffer, from: string, to: string): Buffer {
  const at = bytes.indexOf(from);
  if (at === -1 || from.length !== to.length) return bytes;
  const changed = Buffer.from(bytes);
  changed.write(to, at, 'latin1');
  return changed;
}
