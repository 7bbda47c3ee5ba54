import { BackendError, type Clock, type Timer } from '@holdfast/core';
import type { Client } from './client.js';
import { isReadOnly, toBackendError } from './errors.js';
import type { Script } from './script.js';
import { tlsHint } from './tls-hint.js';

/** How a link behaves. */
export interface LinkOptions {
  /** What it leads to, for messages: a host and a port, never a password. */
  readonly target: string;
  readonly clock: Clock;
  /** ms without any answer after which the connection counts as dead. Also bounds a caller's wait for a connection. */
  readonly patience: number;
  /** ms that a new connection may take to become ready. Default `patience`. */
  readonly dialPatience?: number;
  /** This one server is all there is: read-only after a reconnect too, it will not become writable by asking. */
  readonly readOnlyIsFinal?: boolean;
  /** Makes a client that has not connected yet. Called once for each connection. */
  dial(): Client;
  /** Runs on each new connection before anything else may: a rejection means that the connection is no use. */
  prepare?(client: Client): Promise<unknown>;
  /** Called whenever a connection is ready. */
  onReady?(): void;
  /** Called whenever a connection was lost or could not be made. */
  onDown?(error: BackendError): void;
}

type Argument = string | number;

/** Replicas that must confirm a write before it counts. */
export interface Confirmation {
  readonly replicas: number;
  /** ms */
  readonly timeout: number;
}

/** A script's reply, and how many replicas had it when it was asked for. */
export interface Confirmed {
  readonly reply: unknown;
  readonly replicas: number;
}

interface Waiting {
  resolve(client: Client): void;
  reject(error: BackendError): void;
  timer: Timer;
}

/** Commands of one tick that leave together. */
const BUNDLE = 16;

const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 2000;

/**
 * A connection to one server that comes back by itself.
 *
 * Each connection is a new client: ioredis re-sends, queues and times out commands in ways that differ by option and
 * version (a command may run after it was reported failed, or stay pending for ever), and none of them applies to a
 * client that lives once. A command is sent on a ready connection or not at all, and when the connection ends each
 * unanswered one is rejected.
 *
 * - **Silence is noticed**: with commands unanswered and nothing received for `patience`, the connection is dropped.
 *   One timer serves all commands, because replies come in order.
 * - **Callers at once share a write**: with answers outstanding, the socket is corked until the tick ends.
 * - Sockets and timers never keep the process alive.
 */
export class Link {
  readonly #options: LinkOptions;
  /** The ready client, if any. */
  #client: Client | undefined;
  /** The client that is being connected. */
  #dialing: Client | undefined;
  #born: Timer | undefined;
  /** Ends a connection that does not become ready. */
  #overdue: Timer | undefined;
  #pause: Timer | undefined;
  #failures = 0;
  #lastError: BackendError | undefined;
  /** It was connected once: then it speaks as we do. */
  #understands = false;
  readonly #waiting = new Set<Waiting>();
  #closed = false;

  #unanswered = 0;
  /** When the present silence began, while anything is unanswered: the last answer, or the send that ended an idle time. */
  #silentSince = 0;
  #watch: Timer | undefined;
  /** Commands that wait for the end of the tick; undefined while the socket is not corked. */
  #corked: number | undefined;
  /** Scripts that a server has forgotten and is being told again, by hash. */
  readonly #teaching = new Map<string, Promise<unknown>>();
  /** Connections in a row that were told READONLY. */
  #readOnlyConnections = 0;
  #readOnlyClient: Client | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  get target(): string {
    return this.#options.target;
  }

  get isReady(): boolean {
    return this.#client !== undefined;
  }

  /** Resolves when a connection is ready; rejects with the last failure when there is none within `limit` ms. */
  async open(limit = this.#options.patience): Promise<void> {
    await this.#ready(limit);
  }

  /** Runs a script, also on a server that does not know it (yet, or any more). */
  run(script: Script, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    const client = this.#client;
    if (client !== undefined) return this.#run(client, script, keys, args);
    return this.#ready().then((ready) => this.#run(ready, script, keys, args));
  }

  /** As `run`, and asks on the same connection how many replicas have what it wrote. */
  async runConfirmed(
    script: Script,
    keys: readonly string[],
    args: readonly Argument[],
    confirmation: Confirmation,
  ): Promise<Confirmed> {
    const client = await this.#ready();
    const reply = await this.#run(client, script, keys, args);
    // WAIT is about the writes of its own connection: on another one it would confirm nothing.
    const replicas = await this.#send(client, 'wait', [confirmation.replicas, confirmation.timeout]);
    return { reply, replicas: Number(replicas) };
  }

  /** Sends any command. */
  async call(command: string, args: readonly Argument[]): Promise<unknown> {
    return this.#send(await this.#ready(), command, args);
  }

  /** As `run`, for a slot that is on its way to this server: the permission to ask is for the next command only. */
  async runAsking(script: Script, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    const client = await this.#ready();
    const asking = this.#send(client, 'asking', []);
    const answer = this.#send(client, 'eval', [script.source, keys.length, ...keys, ...args]);
    await asking.catch(() => undefined);
    return answer;
  }

  /** Drops the connection if it has been silent for `ms` with commands unanswered; the next one is dialled at once. */
  suspect(ms: number): void {
    const client = this.#client;
    if (client === undefined || this.#unanswered === 0) return;
    if (this.#options.clock.now() - this.#silentSince < ms) return;
    this.#drop(client, this.#silence(ms));
  }

  /** Ends everything. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#pause?.cancel();
    this.#born?.cancel();
    this.#overdue?.cancel();
    this.#watch?.cancel();
    const error = new BackendError('BACKEND_UNAVAILABLE', `the connection to ${this.target} is closed`);
    for (const waiting of [...this.#waiting]) waiting.reject(error);
    for (const client of [this.#client, this.#dialing]) if (client !== undefined) hangUp(client);
    this.#client = undefined;
    this.#dialing = undefined;
  }

  #run(client: Client, script: Script, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    return this.#send(client, 'evalsha', [script.sha, keys.length, ...keys, ...args], (error) => {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return this.#teach(client, script, keys, args);
    });
  }

  /** One of the callers that find the script unknown sends its text, the others wait for that and ask again. */
  #teach(
    client: Client,
    script: Script,
    keys: readonly string[],
    args: readonly Argument[],
  ): Promise<unknown> {
    const teaching = this.#teaching.get(script.sha);
    if (teaching !== undefined) {
      return teaching.then(() => this.#send(client, 'evalsha', [script.sha, keys.length, ...keys, ...args]));
    }
    const answer = this.#send(client, 'eval', [script.source, keys.length, ...keys, ...args]);
    const done = answer.then(
      () => this.#teaching.delete(script.sha),
      () => this.#teaching.delete(script.sha),
    );
    this.#teaching.set(script.sha, done);
    return answer;
  }

  /** Sends on this very connection. `otherwise` may make up for an error. */
  #send(
    client: Client,
    command: string,
    args: readonly Argument[],
    otherwise: (error: unknown) => unknown = rethrow,
  ): Promise<unknown> {
    if (client !== this.#client) {
      return Promise.reject(this.#lastError ?? this.#lost(new Error('connection lost')));
    }
    if (this.#unanswered++ === 0) this.#silentSince = this.#options.clock.now();
    else this.#cork(client);
    if (this.#watch === undefined) this.#watchAfter(this.#options.patience);
    return client.call(command, args).then(
      (reply) => {
        this.#answered(client);
        return reply;
      },
      (error: unknown) => {
        this.#answered(client);
        return otherwise(this.#understood(client, error));
      },
    );
  }

  #answered(client: Client): void {
    if (client !== this.#client) return;
    if (--this.#unanswered > 0) this.#silentSince = this.#options.clock.now();
  }

  /** A node that has become a replica leads nowhere: reconnect, since the name may lead elsewhere by now. */
  #understood(client: Client, error: unknown): unknown {
    if (!isReadOnly(error)) return error;
    if (client === this.#client) this.#drop(client, error as Error);
    if (client !== this.#readOnlyClient) this.#readOnlyConnections++;
    this.#readOnlyClient = client;
    if (this.#options.readOnlyIsFinal !== true || this.#readOnlyConnections < 2) return error;
    return new BackendError(
      'BACKEND_REFUSED',
      `Redis at ${this.target} is a read-only replica, also after a reconnect; name its master`,
      { cause: error, transient: false },
    );
  }

  /**
   * What is sent in one tick leaves in few writes: many callers at once cost one system call for each bundle, and the
   * server works on the first while the others are made. A caller that is alone does not wait for the end of the tick.
   */
  #cork(client: Client): void {
    const { stream } = client;
    if (stream?.cork === undefined) return;
    if (this.#corked !== undefined) {
      if (++this.#corked % BUNDLE !== 0) return;
      stream.uncork?.();
      stream.cork();
      return;
    }
    this.#corked = 0;
    stream.cork();
    process.nextTick(() => {
      this.#corked = undefined;
      stream.uncork?.();
    });
  }

  #watchAfter(ms: number): void {
    this.#watch = this.#options.clock.setTimer(ms, () => {
      this.#watch = undefined;
      const client = this.#client;
      if (client === undefined || this.#unanswered === 0) return;
      const silent = this.#options.clock.now() - this.#silentSince;
      if (silent >= this.#options.patience) this.#drop(client, this.#silence(silent));
      else this.#watchAfter(this.#options.patience - silent);
    });
  }

  #silence(ms: number): Error {
    return new Error(`no answer from ${this.target} for ${Math.round(ms)} ms`);
  }

  #ready(limit = this.#options.patience): Promise<Client> {
    if (this.#client !== undefined) return Promise.resolve(this.#client);
    if (this.#closed) return Promise.reject(this.#lost(new Error('closed')));
    this.#dial();
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        resolve: (client) => {
          this.#waiting.delete(waiting);
          waiting.timer.cancel();
          resolve(client);
        },
        reject: (error) => {
          this.#waiting.delete(waiting);
          waiting.timer.cancel();
          reject(error);
        },
        timer: this.#options.clock.setTimer(limit, () =>
          waiting.reject(this.#lastError ?? this.#lost(this.#silence(limit))),
        ),
      };
      this.#waiting.add(waiting);
    });
  }

  #dial(): void {
    if (this.#closed || this.#dialing !== undefined || this.#pause !== undefined) return;
    const client = this.#options.dial();
    this.#dialing = client;
    let failure: Error | undefined;
    client.on('error', (error) => {
      failure ??= error;
      // A handshake that was refused (a wrong database, for one) leaves ioredis connected all the same.
      if (client === this.#dialing) this.#fail(client, failure);
    });
    client.on('connect', () => client.stream?.unref?.());
    client.on('end', () => this.#fail(client, failure ?? new Error('the connection was closed')));
    this.#connect(client).then(
      () => this.#succeed(client),
      (error: unknown) => this.#fail(client, failure ?? (error as Error)),
    );
    // The socket exists one turn later: until it is connected it would keep the process alive.
    this.#born = this.#options.clock.setTimer(1, () => client.stream?.unref?.());
    // A server that stands still is still connected to, by its machine, and then says nothing.
    const { dialPatience = this.#options.patience } = this.#options;
    this.#overdue = this.#options.clock.setTimer(dialPatience, () =>
      this.#fail(client, failure ?? this.#silence(dialPatience)),
    );
  }

  async #connect(client: Client): Promise<void> {
    await client.connect();
    await this.#options.prepare?.(client);
  }

  #succeed(client: Client): void {
    if (client !== this.#dialing) {
      hangUp(client);
      return;
    }
    this.#overdue?.cancel();
    this.#dialing = undefined;
    this.#client = client;
    this.#understands = true;
    this.#failures = 0;
    this.#unanswered = 0;
    this.#corked = undefined;
    this.#teaching.clear();
    for (const waiting of [...this.#waiting]) waiting.resolve(client);
    this.#options.onReady?.();
  }

  #drop(client: Client, reason: Error): void {
    hangUp(client);
    this.#fail(client, reason);
  }

  /** This client is of no more use. */
  #fail(client: Client, error: Error): void {
    if (this.#closed) return;
    if (client === this.#client) this.#client = undefined;
    else if (client === this.#dialing) this.#dialing = undefined;
    else return;
    this.#overdue?.cancel();
    const hint = this.#understands ? '' : tlsHint(client, error);
    hangUp(client);
    this.#lastError = this.#lost(error, hint);
    const { transient } = this.#lastError;
    if (!transient) for (const waiting of [...this.#waiting]) waiting.reject(this.#lastError);
    // A permanent refusal is not asked about again until somebody wants the link.
    if (transient) this.#pauseThenDial();
    this.#options.onDown?.(this.#lastError);
  }

  #pauseThenDial(): void {
    const ceiling = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** Math.min(this.#failures++, 10));
    this.#pause = this.#options.clock.setTimer(ceiling * (0.5 + Math.random() / 2), () => {
      this.#pause = undefined;
      this.#dial();
    });
  }

  #lost(error: Error, hint = ''): BackendError {
    const understood = toBackendError(error);
    return new BackendError(
      understood.code as 'BACKEND_UNAVAILABLE' | 'BACKEND_REFUSED',
      `no connection to Redis at ${this.target}: ${error.message}${hint}`,
      { cause: understood.cause ?? error, transient: understood.transient },
    );
  }
}

function rethrow(error: unknown): never {
  throw error;
}

/** Ends a client at once: `disconnect` alone would wait for the peer, and keep the process alive meanwhile. */
function hangUp(client: Client): void {
  client.disconnect();
  client.stream?.destroy?.();
}
