import { BackendError } from '@holdfast/core';
import { type Client, ourOptions } from './client.js';
import { type Confirmation, type Confirmed, Link } from './link.js';
import type { SingleTopology } from './options.js';
import type { Script } from './script.js';
import type { Servers, ServersHost } from './servers.js';

type Arguments = readonly (string | number)[];

/** One server, or the one that Sentinel calls the master. */
export class Single implements Servers {
  readonly replicates: boolean;
  readonly #topology: SingleTopology;
  readonly #host: ServersHost;
  readonly #link: Link;

  constructor(topology: SingleTopology, host: ServersHost) {
    this.#topology = topology;
    this.#host = host;
    this.replicates = topology.kind === 'sentinel';
    this.#link = new Link({
      target: topology.target,
      clock: host.clock,
      patience: host.patience,
      readOnlyIsFinal: topology.kind === 'single',
      dial: () => topology.dial(ourOptions('holdfast', host.patience)),
      prepare: (client) => this.#check(client),
      onReady: () => host.onReady(),
      onDown: (error) => host.onDown(error),
    });
  }

  open(limit: number): Promise<void> {
    return this.#link.open(limit);
  }

  run(script: Script, keys: readonly string[], args: Arguments): Promise<unknown> {
    return this.#link.run(script, keys, args);
  }

  runConfirmed(
    script: Script,
    keys: readonly string[],
    args: Arguments,
    confirmation: Confirmation,
  ): Promise<Confirmed> {
    return this.#link.runConfirmed(script, keys, args, confirmation);
  }

  async masters(): Promise<readonly Link[]> {
    return [this.#link];
  }

  linkOf(): Link {
    return this.#link;
  }

  dialSubscriber(): Client {
    return this.#topology.dial(ourOptions('holdfast-wake', this.#host.patience));
  }

  close(): void {
    this.#link.close();
  }

  /** Runs before anything else on a new connection, so that nothing ever runs in another database or on a replica. */
  async #check(client: Client): Promise<void> {
    // ioredis goes on in database 0 when its own SELECT is refused; ours rejects.
    if (this.#topology.db !== 0) await client.call('select', [this.#topology.db]);
    if (this.#topology.kind === 'sentinel') await this.#assertMaster(client);
  }

  /** A sentinel may name a server that has been demoted since, or is not promoted yet. */
  async #assertMaster(client: Client): Promise<void> {
    const role = await client.call('role', []);
    const is = Array.isArray(role) ? String(role[0]) : 'unknown';
    if (is === 'master') return;
    throw new BackendError(
      'BACKEND_UNAVAILABLE',
      `the server that Sentinel names as the master of ${this.#topology.target} is a ${is}`,
    );
  }
}
