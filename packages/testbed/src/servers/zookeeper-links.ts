import type { FaultProxy, ProxyOptions } from '../proxy/proxy.js';

/** Where a member of an ensemble listens for its peers. */
export interface PeerPorts {
  readonly quorum: number;
  readonly election: number;
}

/** How the members of an ensemble reach one another. */
export interface Links {
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

function serverLine(index: number, { quorum, election }: PeerPorts): string {
  return `server.${index + 1}=127.0.0.1:${quorum}:${election}`;
}

function replace(bytes: Buffer, from: string, to: string): Buffer {
  const at = bytes.indexOf(from);
  if (at === -1 || from.length !== to.length) return bytes;
  const changed = Buffer.from(bytes);
  changed.write(to, at, 'latin1');
  return changed;
}
