import { BackendError, type BackendHost, type Timer } from '@holdfast/core';
import { type Client, ourOptions } from '../client.js';
import { Link } from '../link.js';
import type { SingleTopology } from '../options.js';
import type { Script } from '../script.js';

/** A release that has not been answered: the server gets it when it is back. */
interface Debt {
  readonly pay: () => Promise<unknown>;
  /** When what it would free has lapsed by itself. */
  readonly until: number;
}

export interface ServerOptions {
  readonly topology: SingleTopology;
  readonly host: BackendHost;
  /** ms within which this server must answer. */
  readonly patience: number;
  /** ms for which a server keeps out after a start. */
  readonly restartGrace: number;
  /** A name may be free. */
  onMessage(channel: string): void;
  /** Messages may have been lost. */
  onSubscribed(): void;
}

/** One of the independent servers of a quorum. */
export class Server {
  readonly #options: ServerOptions;
  readonly #link: Link;
  readonly #ear: Link;
  readonly #channels = new Set<string>();
  readonly #debts = new Map<string, Debt>();
  #retry: Timer | undefined;
  #closed = false;
  /** Until when this server must not vote: it may have forgotten a vote of before its start. */
  #keepsOutUntil = 0;

  constructor(options: ServerOptions) {
    this.#options = options;
    const { topology, host, patience } = options;
    const dialPatience = Math.max(patience, host.commandTimeout);
    const common = { clock: host.clock, patience, dialPatience, readOnlyIsFinal: true };
    this.#link = new Link({
      ...common,
      target: topology.target,
      dial: () => topology.dial(ourOptions('holdfast', dialPatience)),
      prepare: (client) => this.#prepare(client),
      onReady: () => this.#payDebts(),
    });
    this.#ear = new Link({
      ...common,
      target: `${topology.target} (subscription)`,
      dial: () => {
        const client = topology.dial(ourOptions('holdfast-wake', dialPatience));
        client.on('message', (channel) => options.onMessage(channel));
        return client;
      },
      prepare: (client) => Promise.all([...this.#channels].map((channel) => client.subscribe(channel))),
      onReady: () => options.onSubscribed(),
    });
  }

  get link(): Link {
    return this.#link;
  }

  async open(limit: number): Promise<void> {
    this.#ear.open(limit).catch(() => undefined);
    await this.#link.open(limit);
  }

  run(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    return this.#link.run(script, keys, args);
  }

  /** As `run`, but only of a server that may vote. */
  vote(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    if (this.#link.isReady) return this.#vote(script, keys, args);
    // A restart breaks the connection, and the next one knows of it before it sends anything; so it must be ready when
    // the request is sent, and not only have been.
    return this.#link.open().then(() => this.vote(script, keys, args));
  }

  /** Why it does not vote for another `ms`. */
  keepsOut(ms: number): BackendError {
    return new BackendError(
      'BACKEND_UNAVAILABLE',
      `Redis at ${this.#link.target} has restarted, or is new or emptied, and keeps out for another ${Math.ceil(ms)} ms (restartGrace)`,
    );
  }

  /** Runs a release for certain: again when the server is back, unless what it frees has lapsed by then. */
  async settle(debtor: string, ttl: number, release: () => Promise<unknown>): Promise<unknown> {
    const until = this.#options.host.clock.now() + ttl;
    try {
      return await release();
    } catch (error) {
      this.#debts.set(debtor, { pay: release, until });
      this.#payLater();
      throw error;
    }
  }

  async subscribe(channel: string): Promise<void> {
    if (this.#channels.has(channel)) return;
    this.#channels.add(channel);
    await this.#ear.call('subscribe', [channel]);
  }

  unsubscribe(channel: string): void {
    if (!this.#channels.delete(channel) || !this.#ear.isReady) return;
    // Unanswered, the connection is dropped, and the next one does not subscribe to it.
    this.#ear.call('unsubscribe', [channel]).catch(() => undefined);
  }

  /** A subscription that has silently died would cost the waiters their messages. */
  checkSubscription(): void {
    this.#ear.call('ping', []).catch(() => undefined);
  }

  close(): void {
    this.#closed = true;
    this.#retry?.cancel();
    this.#link.close();
    this.#ear.close();
  }

  async #prepare(client: Client): Promise<void> {
    const { topology, restartGrace, host } = this.#options;
    // ioredis goes on in database 0 when its own SELECT is refused; ours rejects.
    if (topology.db !== 0) await client.call('select', [topology.db]);
    if (restartGrace === 0) return;
    const info = String(await client.call('info', ['server']));
    const wait = stillKeepsOut(info, restartGrace);
    this.#keepsOutUntil = wait > 0 ? host.clock.now() + wait : 0;
  }

  #vote(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    const wait = this.#keepsOutUntil - this.#options.host.clock.now();
    if (wait <= 0) return this.#link.run(script, keys, args);
    return Promise.reject(this.keepsOut(wait));
  }

  #payDebts(): void {
    const now = this.#options.host.clock.now();
    for (const [debtor, debt] of this.#debts) {
      this.#debts.delete(debtor);
      if (debt.until > now) this.settle(debtor, debt.until - now, debt.pay).catch(() => undefined);
    }
  }

  #payLater(): void {
    if (this.#retry !== undefined || this.#closed) return;
    this.#retry = this.#options.host.clock.setTimer(this.#options.patience, () => {
      this.#retry = undefined;
      if (this.#link.isReady) this.#payDebts();
      else if (this.#debts.size > 0) this.#payLater();
    });
  }
}

/**
 * For how long a server must not vote yet, ms, by its own word on how long it has been up. It counts whole seconds from a
 * whole second, so that after a moment it may say 1.
 */
export function stillKeepsOut(info: string, restartGrace: number): number {
  const seconds = Number(/^uptime_in_seconds:(\d+)/m.exec(info)?.[1] ?? 0);
  const uptime = Math.max(0, seconds - 1) * 1000;
  return Math.max(0, restartGrace - uptime);
}
