import { randomBytes } from 'node:crypto';
import type { Clock, Timer } from '@holdfast/core';
import { sleep } from '@holdfast/core';
import type { Wakeups } from '../server-store.js';
import type { PostgresConnection } from './postgres.js';

/** What we use of a pg client that listens. */
export interface ListeningClient extends PostgresConnection {
  on(event: 'notification', listener: (message: { channel: string; payload?: string }) => void): unknown;
  on(event: 'error' | 'end', listener: (error?: Error) => void): unknown;
}

/** Where the dedicated connection comes from. */
export interface ListeningSource {
  connect(): Promise<ListeningClient>;
  /** Closes it, without waiting for the server. */
  drop(client: ListeningClient): void;
}

/** ms between proofs that messages still arrive: a connection can die without a word. */
const PROOF_EVERY = 15_000;

/** ms within which a message must arrive to count. A server that is slow to send one may be as slow to deliver it. */
const PROOF_WITHIN = 1000;
const PROOF_SLOWER = 3;

/** ms between attempts to listen where messages do not arrive, at most. */
const LONGEST_PAUSE = 30_000;

/**
 * Messages about turns: one connection that listens on a channel of this instance's own, however many locks. It heals
 * itself, and proves itself: a message is sent through the other connections, and only while such messages arrive do
 * the waiters rely on them. Behind a pooler in transaction mode none does, and the waiters ask instead.
 */
export class PostgresWakeups implements Wakeups {
  readonly channel = `holdfast_${randomBytes(12).toString('hex')}`;
  readonly #source: ListeningSource;
  readonly #notify: (channel: string, payload: string) => Promise<void>;
  readonly #clock: Clock;
  readonly #woken: (owner: string) => void;
  readonly #changed: () => void;
  readonly #report: (error: Error) => void;
  readonly #stop = new AbortController();
  #active = false;
  #client: ListeningClient | undefined;
  #proof: { readonly text: string; readonly arrived: () => void } | undefined;

  constructor(options: {
    readonly source: ListeningSource;
    /** Sends a message through another connection. */
    readonly notify: (channel: string, payload: string) => Promise<void>;
    readonly clock: Clock;
    readonly woken: (owner: string) => void;
    /** Messages begin or cease to arrive. */
    readonly changed: () => void;
    readonly report: (error: Error) => void;
  }) {
    this.#source = options.source;
    this.#notify = options.notify;
    this.#clock = options.clock;
    this.#woken = options.woken;
    this.#changed = options.changed;
    this.#report = options.report;
  }

  get active(): boolean {
    return this.#active;
  }

  /** Resolves when it is known whether messages arrive, or after `limit` ms: then it may still turn out that they do. */
  async start(limit: number): Promise<void> {
    const known = new AbortController();
    this.#run(() => known.abort()).catch((error) => this.#report(error as Error));
    await sleep(this.#clock, limit, known.signal);
  }

  /** What is still on its way ends by itself, when it is answered or its time is over, and finds that nobody listens. */
  stop(): void {
    this.#stop.abort();
    if (this.#client !== undefined) this.#source.drop(this.#client);
  }

  async #run(settled: () => void): Promise<void> {
    const { signal } = this.#stop;
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        if (await this.#listen(settled)) failures = 0;
      } catch (error) {
        // The first failure is news; that it goes on is not.
        if (failures === 0 && !signal.aborted) this.#report(error as Error);
      }
      this.#set(false);
      settled();
      const pause = Math.min(LONGEST_PAUSE, 100 * 2 ** Math.min(failures, 10));
      await sleep(this.#clock, pause * (0.5 + Math.random() / 2), signal);
    }
  }

  /** Listens until the connection fails or is shown not to work. Answers whether it ever worked. */
  async #listen(settled: () => void): Promise<boolean> {
    const { signal } = this.#stop;
    const client = await this.#source.connect();
    this.#client = client;
    const ended = new AbortController();
    const end = (): void => ended.abort();
    client.on('error', end);
    client.on('end', end);
    client.on('notification', ({ channel, payload = '' }) => this.#receive(channel, payload));
    signal.addEventListener('abort', end, { once: true });
    try {
      if (signal.aborted) return false;
      // The channel is made of letters and digits alone.
      await this.#answered(client.query({ text: `LISTEN ${this.channel}`, values: [] }), ended.signal);
      let worked = false;
      while (!ended.signal.aborted && (await this.#proves(ended.signal))) {
        worked = true;
        this.#set(true);
        settled();
        await sleep(this.#clock, PROOF_EVERY * (0.75 + Math.random() / 2), ended.signal);
      }
      return worked;
    } finally {
      signal.removeEventListener('abort', end);
      this.#client = undefined;
      this.#source.drop(client);
    }
  }

  #receive(channel: string, payload: string): void {
    if (channel !== this.channel) return;
    if (payload === this.#proof?.text) this.#proof.arrived();
    else this.#woken(payload);
  }

  #set(active: boolean): void {
    if (active === this.#active) return;
    this.#active = active;
    this.#changed();
  }

  /** Sends ourselves a message the way that others do, and says whether it came. */
  async #proves(ended: AbortSignal): Promise<boolean> {
    const text = `proof ${randomBytes(6).toString('hex')}`;
    const arrival = new AbortController();
    this.#proof = { text, arrived: () => arrival.abort() };
    const early = AbortSignal.any([arrival.signal, ended]);
    try {
      const asked = this.#clock.now();
      await this.#notify(this.channel, text);
      const took = this.#clock.now() - asked;
      await sleep(this.#clock, Math.max(PROOF_WITHIN, PROOF_SLOWER * took), early);
      return arrival.signal.aborted;
    } finally {
      this.#proof = undefined;
    }
  }

  async #answered(query: Promise<unknown>, ended: AbortSignal): Promise<void> {
    query.catch(() => {});
    let timer: Timer | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = this.#clock.setTimer(PROOF_WITHIN, () => reject(new Error('LISTEN was not answered in time')));
    });
    const lost = new Promise<never>((_resolve, reject) => {
      const fail = (): void => reject(new Error('the connection that listens for turns has ended'));
      if (ended.aborted) fail();
      else ended.addEventListener('abort', fail, { once: true });
    });
    lost.catch(() => {});
    try {
      await Promise.race([query, late, lost]);
    } finally {
      timer?.cancel();
    }
  }
}
