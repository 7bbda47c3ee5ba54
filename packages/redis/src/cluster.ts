import { BackendError } from '@holdfast/core';

import { type Client, ourOptions } from './client.js';
import { isReply } from './errors.js';
import { type Confirmation, type Confirmed, Link } from './link.js';
import type { ClusterTopology, NodeAddress } from './options.js';
import type { Script } from './script.js';
import type { Servers, ServersHost } from './servers.js';
import { SLOTS, slotOf } from './slot.js';

type Arguments = readonly (string | number)[];

/** How often one request follows a slot that moves before it is left to the caller's backoff. */
const REDIRECTIONS = 8;

/** Where a server sends us instead. */
interface Redirection {
  readonly kind: 'moved' | 'ask';
  readonly address: string;
}

/**
 * A cluster: a link for each master, and the map from slots to masters.
 *
 * Why not ioredis's `Cluster`: it sends commands again by itself, holds them without a deadline while it looks for
 * nodes, does not notice a node that has gone silent, and its timers keep the process alive.
 */
export class Cluster implements Servers {
  readonly replicates = true;
  readonly #topology: ClusterTopology;
  readonly #host: ServersHost;
  readonly #links = new Map<string, Link>();
  /** The master of each slot. */
  readonly #owners = new Array<string | undefined>(SLOTS);
  /** Every node that was ever named, replicas too: one of them may be all that is left to ask. */
  readonly #known = new Set<string>();
  #refreshing: Promise<void> | undefined;
  #closed = false;

  constructor(topology: ClusterTopology, host: ServersHost) {
    this.#topology = topology;
    this.#host = host;
    for (const seed of topology.seeds) this.#known.add(addressOf(seed));
  }

  async open(limit: number): Promise<void> {
    await Promise.any([...this.#known].map((address) => this.#linkTo(address).open(limit))).catch(firstError);
    await this.#refresh();
  }

  run(script: Script, keys: readonly string[], args: Arguments): Promise<unknown> {
    return this.#routed(keys, (link, asking) =>
      asking ? link.runAsking(script, keys, args) : link.run(script, keys, args),
    );
  }

  runConfirmed(
    script: Script,
    keys: readonly string[],
    args: Arguments,
    confirmation: Confirmation,
  ): Promise<Confirmed> {
    return this.#routed(keys, async (link, asking) => {
      if (!asking) return link.runConfirmed(script, keys, args, confirmation);
      // A slot on its way has no replicas to speak of at its destination.
      return { reply: await link.runAsking(script, keys, args), replicas: 0 };
    });
  }

  async masters(): Promise<readonly Link[]> {
    await this.#refresh();
    const addresses = new Set(this.#owners.filter((owner) => owner !== undefined));
    return [...addresses].map((address) => this.#linkTo(address));
  }

  linkOf(key: string): Link {
    const owner = this.#owners[slotOf(key)];
    return this.#linkTo(owner ?? this.#anyAddress());
  }

  dialSubscriber(): Client {
    return this.#dial(this.#anyAddress(), 'holdfast-wake');
  }

  close(): void {
    this.#closed = true;
    for (const link of this.#links.values()) link.close();
    this.#links.clear();
  }

  async #routed<T>(keys: readonly string[], send: (link: Link, asking: boolean) => Promise<T>): Promise<T> {
    const slot = slotOf(keys[0] ?? '');
    if (this.#owners[slot] === undefined) await this.#refresh();
    let address = this.#owners[slot] ?? this.#anyAddress();
    let asking = false;
    for (let hops = 0; ; hops++) {
      try {
        return await send(this.#linkTo(address), asking);
      } catch (error) {
        const redirection = redirectionOf(error, address);
        if (redirection === undefined || hops === REDIRECTIONS) throw error;
        address = this.#translate(redirection.address);
        asking = redirection.kind === 'ask';
        if (redirection.kind === 'moved') {
          this.#owners[slot] = address;
          this.#refreshSoon();
        }
      }
    }
  }

  #linkTo(address: string): Link {
    const present = this.#links.get(address);
    if (present !== undefined) return present;
    const link = new Link({
      target: address,
      clock: this.#host.clock,
      patience: this.#host.patience,
      dial: () => this.#dial(address, 'holdfast'),
      onReady: () => this.#host.onReady(),
      onDown: (error) => {
        // Its slots may have another master by now.
        this.#refreshSoon();
        this.#host.onDown(error);
      },
    });
    if (this.#closed) link.close();
    else this.#links.set(address, link);
    return link;
  }

  #dial(address: string, connectionName: string): Client {
    return this.#topology.dial(parseAddress(address), ourOptions(connectionName, this.#host.patience));
  }

  #anyAddress(): string {
    const ready = [...this.#links.values()].filter((link) => link.isReady).map((link) => link.target);
    const candidates = ready.length > 0 ? ready : [...this.#known];
    return candidates[Math.floor(Math.random() * candidates.length)] ?? '';
  }

  #refreshSoon(): void {
    // Its failure shows at the next request, which then has a link that is down.
    this.#refresh().catch(() => undefined);
  }

  #refresh(): Promise<void> {
    this.#refreshing ??= this.#readMap().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  /** Asks every node that may know, and believes the first that answers: a redirection corrects what it has wrong. */
  async #readMap(): Promise<void> {
    if (this.#closed)
      throw new BackendError('BACKEND_UNAVAILABLE', 'the connections to the cluster are closed');
    const addresses = new Set([...this.#links.keys(), ...this.#known]);
    const ready = [...this.#links.values()].filter((link) => link.isReady);
    const asked = ready.length > 0 ? ready : [...addresses].map((address) => this.#linkTo(address));
    const ranges = await Promise.any(asked.map((link) => this.#askForMap(link))).catch(firstError);
    if (this.#closed) return;
    this.#owners.fill(undefined);
    for (const { from, to, master, replicas } of ranges) {
      this.#owners.fill(master, from, to + 1);
      this.#known.add(master);
      for (const replica of replicas) this.#known.add(replica);
    }
    const masters = new Set(ranges.map((range) => range.master));
    for (const [address, link] of this.#links) {
      if (masters.has(address)) continue;
      this.#links.delete(address);
      link.close();
    }
  }

  async #askForMap(link: Link): Promise<readonly SlotRange[]> {
    const answer = await link.call('cluster', ['slots']);
    const ranges = parseSlots(answer, link.target).map((range) => ({
      ...range,
      master: this.#translate(range.master),
      replicas: range.replicas.map((replica) => this.#translate(replica)),
    }));
    if (ranges.length > 0) return ranges;
    throw new BackendError('BACKEND_UNAVAILABLE', `the node ${link.target} knows no slots yet`);
  }

  /** Where a node that names itself by an inner address is seen from here. */
  #translate(address: string): string {
    const { natMap } = this.#topology;
    const mapped = typeof natMap === 'function' ? natMap(address) : natMap?.[address];
    return mapped === undefined || mapped === null ? address : addressOf(mapped);
  }
}

/** All failed: the first failure says as much as any. */
function firstError(error: unknown): never {
  throw error instanceof AggregateError ? error.errors[0] : error;
}

interface SlotRange {
  readonly from: number;
  readonly to: number;
  readonly master: string;
  readonly replicas: readonly string[];
}

/** The answer of CLUSTER SLOTS: [from, to, [host, port, …], …replicas] for each range. */
function parseSlots(answer: unknown, askedAddress: string): SlotRange[] {
  if (!Array.isArray(answer)) return [];
  return answer.map((range: unknown) => {
    const [from, to, master, ...replicas] = range as [number, number, unknown, ...unknown[]];
    return {
      from,
      to,
      master: nodeAddress(master, askedAddress),
      replicas: replicas.map((replica) => nodeAddress(replica, askedAddress)),
    };
  });
}

/** A node that does not know its own host is the one that we asked, at its host. */
function nodeAddress(node: unknown, askedAddress: string): string {
  const [host, port] = node as [string | null, number];
  const known = host !== null && host !== '' && host !== '?';
  return addressOf({ host: known ? host : parseAddress(askedAddress).host, port });
}

function redirectionOf(error: unknown, askedAddress: string): Redirection | undefined {
  if (!isReply(error)) return undefined;
  const match = /^(MOVED|ASK) \d+ (\S*):(\d+)/.exec(error.message);
  if (match === null) return undefined;
  const [, kind, host, port] = match;
  const address = nodeAddress([host ?? '', Number(port)], askedAddress);
  return { kind: kind === 'MOVED' ? 'moved' : 'ask', address };
}

function addressOf({ host, port }: NodeAddress): string {
  return `${host}:${port}`;
}

function parseAddress(address: string): NodeAddress {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
}
