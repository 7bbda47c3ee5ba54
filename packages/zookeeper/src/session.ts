import { randomUUID } from 'node:crypto';
import { type Clock, sleep, type Timer } from '@holdfast/core';
import type { Stat } from 'node-zookeeper-client/lib/jute/index.js';
import { Connection, type ConnectionSettings } from './connection.js';
import { CODE, hasCode, isTransient, ZooKeeperError } from './errors.js';
import type { Acl } from './options.js';

const EPHEMERAL = 1;
const EPHEMERAL_SEQUENTIAL = 3;
const NOTHING = Buffer.alloc(0);

/** What a node's record says. */
export interface NodeStat {
  /** The transaction that made the node. */
  readonly czxid: bigint;
  /** When its data was last written, ms since the epoch on the server's clock. */
  readonly modifiedAt: number;
  /** The session that it ends with; 0 for a node that stays. */
  readonly session: bigint;
  readonly children: number;
}

/** How sessions are made. */
export interface SessionSettings extends ConnectionSettings {
  readonly acl: Acl;
  /** The node under which each session keeps one of its own. */
  readonly home: string;
  /** ms that a background request may take. */
  readonly commandTimeout: number;
}

/** What a session tells its owner. Nothing here may throw. */
export interface SessionEvents {
  /** Its nodes are gone, or will be: it expired, was refused, or was closed. */
  ended(cause: Error): void;
}

/**
 * One session, from its first handshake to its expiry or close, across as many connections as it takes.
 *
 * **Validity.** The session's heartbeat is a write to a node of its own: a server that is cut off from its leader goes
 * on answering reads and pings, while the leader lets the session expire. And an answered write proves less than it
 * seems: followers report who is alive to the leader only every half tick, and a report may be lost just after the
 * write. The one before was reported: heartbeats are a quarter of the timeout apart, which is at least half a tick. So
 * validity counts from the last answered heartbeat that another, a quarter later, was answered after. A new session's
 * handshake is itself a write; a handshake that takes an old session up again proves nothing (a deposed leader grants
 * it).
 *
 * **Ready** means that a write was answered on this connection. Everything that this session sent on an earlier
 * connection was then applied, or never will be, and reads see it.
 */
export class Session {
  readonly #settings: SessionSettings;
  readonly #clock: Clock;
  readonly #events: SessionEvents;
  readonly #connection: Connection;
  readonly #node: string;
  #state: 'opening' | 'suspended' | 'ready' | 'ended' = 'opening';
  #cause: Error | undefined;
  readonly #waiting = new Set<() => void>();
  /** Paths that are being made. */
  readonly #making = new Map<string, Promise<void>>();
  #beat: Timer | undefined;
  /** When the answered heartbeats were sent, oldest first: from the one that validity counts from. */
  #answered: number[] = [];

  constructor(settings: SessionSettings, clock: Clock, events: SessionEvents) {
    this.#settings = settings;
    this.#clock = clock;
    this.#events = events;
    this.#node = `${settings.home}/${randomUUID()}`;
    this.#connection = new Connection(settings, clock, {
      connected: () => void this.#attach(),
      disconnected: (cause) => this.#suspend(cause),
      ended: (cause) => this.#end(cause),
    });
    this.#connection.start();
  }

  get id(): bigint {
    return this.#connection.sessionId;
  }

  /** ms, as negotiated. */
  get timeout(): number {
    return this.#connection.sessionTimeout;
  }

  /** A path for a node of this session's, that nobody else uses. */
  freshPath(): string {
    return `${this.#settings.home}/${randomUUID()}`;
  }

  get ended(): boolean {
    return this.#state === 'ended';
  }

  get ready(): boolean {
    return this.#state === 'ready';
  }

  /** Why it is not ready: the last connection's fault, or how it ended. */
  get cause(): Error | undefined {
    return this.#cause;
  }

  /** From here, on the clock, the server keeps the session for at least its timeout. */
  get validFrom(): number {
    return this.#answered[0] ?? Number.NEGATIVE_INFINITY;
  }

  /** ms between heartbeats. */
  get #period(): number {
    return Math.ceil(this.timeout / 4);
  }

  /** Resolves once ready: true; once ended or, with `until`, too late: false. */
  async whenReady(until = Number.POSITIVE_INFINITY): Promise<boolean> {
    while (this.#state === 'opening' || this.#state === 'suspended') {
      const left = until - this.#clock.now();
      if (left <= 0) return false;
      await this.#nextChange(left);
    }
    return this.#state === 'ready';
  }

  #nextChange(within: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        timer.cancel();
        this.#waiting.delete(done);
        resolve();
      };
      const timer = this.#clock.setTimer(within, done);
      this.#waiting.add(done);
    });
  }

  /**
   * Repeats `work`, across connections, until it has been answered or the session has ended.
   *
   * @returns undefined when the session ended first
   * @throws what the server refuses for good
   */
  async certainly<T>(work: (until: number) => Promise<T>): Promise<T | undefined> {
    while (this.ready || (await this.whenReady())) {
      try {
        return await work(this.#clock.now() + this.#settings.commandTimeout);
      } catch (error) {
        if (!isTransient(error)) throw error;
        await sleep(this.#clock, 50);
      }
    }
    return undefined;
  }

  /** Most of its life is before it: so it is while heartbeats are answered on time, and not just after an interruption. */
  get sound(): boolean {
    return this.#clock.now() <= this.validFrom + this.#period * 2.5;
  }

  /** Resolves once it is sound: after an interruption with the second heartbeat that is answered. */
  async whenSound(until: number): Promise<void> {
    while (!this.sound) {
      if (!this.ready) throw new ZooKeeperError(CODE.connectionLoss, undefined, { cause: this.#cause });
      const left = until - this.#clock.now();
      if (left <= 0) throw new ZooKeeperError(CODE.operationTimeout, this.#node);
      await this.#nextChange(left);
    }
  }

  /** Writes to the session's own node: proves that the session lives, and that later reads are no older than now. */
  async heartbeat(until: number): Promise<void> {
    const sent = this.#clock.now();
    try {
      await this.#connection.setData(this.#node, NOTHING, until, true);
    } catch (error) {
      if (!hasCode(error, CODE.noNode)) throw error;
      await this.#createOwnNode(until);
    }
    this.#record(sent);
  }

  /** Resolves at once while heartbeats are answered on time, else with the next that is. */
  async fresh(until: number): Promise<void> {
    const last = this.#answered.at(-1) ?? Number.NEGATIVE_INFINITY;
    if (this.#clock.now() - last > this.#period * 1.5) await this.heartbeat(until);
  }

  /** Makes an ephemeral sequential node. */
  async createInLine(prefix: string, data: Buffer, until: number): Promise<{ path: string; czxid: bigint }> {
    const reply = await this.#connection.create(
      prefix,
      data,
      this.#settings.acl,
      EPHEMERAL_SEQUENTIAL,
      until,
    );
    // The answer to a write carries its transaction's id, which for a create is the node's czxid.
    return { path: reply.payload?.path ?? prefix, czxid: reply.header.zxid.readBigInt64BE(0) };
  }

  /** Makes a node that stays, unless it exists. Its parent must exist. */
  async make(path: string, until: number): Promise<void> {
    try {
      await this.#connection.create(path, NOTHING, this.#settings.acl, 0, until);
    } catch (error) {
      if (!hasCode(error, CODE.nodeExists)) throw error;
    }
  }

  /**
   * Makes a node that stays and its parents, once for all who ask at the same time. Looks first: who may not write there
   * may still find it made.
   */
  makePath(path: string, until: number): Promise<void> {
    const present = this.#making.get(path);
    if (present !== undefined) return present;
    const making = this.#makePath(path, until).finally(() => this.#making.delete(path));
    this.#making.set(path, making);
    return making;
  }

  async #makePath(path: string, until: number): Promise<void> {
    if (path === '' || (await this.stat(path, until)) !== undefined) return;
    await this.makePath(path.slice(0, path.lastIndexOf('/')), until);
    await this.make(path, until);
  }

  /** @returns the transaction that removed it; undefined when there is no such node */
  async remove(path: string, until: number): Promise<bigint | undefined> {
    const reply = await unlessMissing(this.#connection.remove(path, until));
    return reply?.header.zxid.readBigInt64BE(0);
  }

  /**
   * Removes the node and leaves, in the same transaction, another that ends with this session: who finds it later knows
   * who removed the first.
   *
   * @returns false, and nothing is left, when there is no such node
   */
  async removeLeaving(path: string, mark: string, until: number): Promise<boolean> {
    try {
      await this.#connection.replace(path, mark, this.#settings.acl, EPHEMERAL, until);
      return true;
    } catch (error) {
      if (hasCode(error, CODE.noNode)) return false;
      throw error;
    }
  }

  /** @returns undefined when there is no such node */
  async stat(path: string, until: number): Promise<NodeStat | undefined> {
    const reply = await unlessMissing(this.#connection.exists(path, until));
    return reply?.payload?.stat === undefined ? undefined : readStat(reply.payload.stat);
  }

  /** @returns undefined when there is no such node */
  async read(path: string, until: number): Promise<{ data: Buffer; stat: NodeStat } | undefined> {
    const reply = await unlessMissing(this.#connection.getData(path, until));
    if (reply?.payload?.stat === undefined) return undefined;
    return { data: reply.payload.data ?? NOTHING, stat: readStat(reply.payload.stat) };
  }

  /** @returns false when there is no such node */
  async write(path: string, data: Buffer, until: number): Promise<boolean> {
    return (await unlessMissing(this.#connection.setData(path, data, until))) !== undefined;
  }

  /** @returns undefined when there is no such node */
  async children(path: string, until: number): Promise<readonly string[] | undefined> {
    const reply = await unlessMissing(this.#connection.getChildren(path, until));
    return reply === undefined ? undefined : (reply.payload?.children ?? []);
  }

  /**
   * Watches a childless node: `gone` is called once, when it is deleted or the connection breaks. A watch on its
   * children, since one on its data would also be woken by a write, and one on its existence would stay behind where
   * there is no such node.
   *
   * @returns undefined, and nothing is watched, when there is no such node
   */
  async watch(path: string, until: number, gone: () => void): Promise<NodeStat | undefined> {
    const reply = await unlessMissing(this.#connection.watchChildren(path, until, gone));
    return reply?.payload?.stat === undefined ? undefined : readStat(reply.payload.stat);
  }

  unwatch(path: string, gone: () => void): void {
    this.#connection.unwatch(path, gone);
  }

  /** Ends the session at the server, across connections, where that can be done by then. Always ends here. */
  async close(until: number): Promise<void> {
    while (this.#state !== 'opening' && (await this.whenReady(until))) {
      try {
        await this.#connection.endSession(until);
        break;
      } catch (error) {
        if (!hasCode(error, CODE.connectionLoss)) break;
      }
    }
    this.#end(new Error('the session was closed'));
    this.#connection.close();
  }

  async #attach(): Promise<void> {
    const sent = this.#clock.now();
    try {
      if (this.#answered.length > 0) {
        await this.heartbeat(sent + this.timeout / 3);
      } else {
        // The first: the handshake made the session, by a write of the leader's.
        this.#record(this.#connection.handshakeSent);
        await this.#createOwnNode(sent + (this.timeout * 2) / 3);
        this.#record(sent);
      }
    } catch (error) {
      return this.#failed(error);
    }
    if (!this.#connection.connected) return;
    this.#changeTo('ready', undefined);
    this.#schedule();
  }

  async #createOwnNode(until: number): Promise<void> {
    const { acl, home } = this.#settings;
    for (;;) {
      try {
        await this.#connection.create(this.#node, NOTHING, acl, EPHEMERAL, until);
        return;
      } catch (error) {
        if (hasCode(error, CODE.nodeExists)) return;
        if (!hasCode(error, CODE.noNode)) throw error;
        await this.makePath(home, until);
      }
    }
  }

  #schedule(): void {
    this.#beat?.cancel();
    // A timer may fire a little early; the spacing is what validity rests on.
    this.#beat = this.#clock.setTimer(this.#period + 2, () => void this.#beatOnce());
  }

  /** Without an answer for two thirds of the timeout the connection is given up, which leaves a third for another. */
  async #beatOnce(): Promise<void> {
    this.#schedule();
    const now = this.#clock.now();
    const last = Math.max(this.#answered.at(-1) ?? 0, this.#connection.handshakeSent);
    try {
      await this.heartbeat(Math.max(last + (this.timeout * 2) / 3, now + this.timeout / 12));
    } catch (error) {
      this.#failed(error);
    }
  }

  /** A heartbeat failed: unless the connection has gone already, it is no good. */
  #failed(error: unknown): void {
    const cause = error instanceof Error ? error : new Error(String(error));
    if (!isTransient(error)) {
      this.#end(cause);
      this.#connection.close();
    } else if (!hasCode(error, CODE.connectionLoss)) {
      this.#connection.drop(cause);
    }
  }

  #record(sent: number): void {
    this.#answered.push(sent);
    const proven = this.#answered.findLastIndex((earlier) => earlier <= sent - this.#period);
    if (proven > 0) this.#answered.splice(0, proven);
    this.#wake();
  }

  #suspend(cause: Error): void {
    this.#beat?.cancel();
    this.#changeTo(this.#answered.length === 0 ? 'opening' : 'suspended', cause);
  }

  #end(cause: Error): void {
    if (this.#state === 'ended') return;
    this.#beat?.cancel();
    this.#changeTo('ended', cause);
    this.#events.ended(cause);
  }

  #changeTo(state: 'opening' | 'suspended' | 'ready' | 'ended', cause: Error | undefined): void {
    if (this.#state === 'ended') return;
    this.#state = state;
    this.#cause = cause;
    this.#wake();
  }

  #wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }
}

/** The session, whichever is the present one: after an expiry there is a new one. */
export class Sessions {
  readonly #settings: SessionSettings;
  readonly #clock: Clock;
  readonly #ended: (session: Session, cause: Error) => void;
  #current: Session | undefined;
  #closed = false;

  /** @param ended called for each session that has ended, with its nodes */
  constructor(settings: SessionSettings, clock: Clock, ended: (session: Session, cause: Error) => void) {
    this.#settings = settings;
    this.#clock = clock;
    this.#ended = ended;
  }

  /**
   * The present session, ready.
   *
   * @throws ZooKeeperError when there is none by then; what the server refuses for good, at once
   */
  async ready(until: number): Promise<Session> {
    for (;;) {
      if (this.#closed) throw new ZooKeeperError(CODE.connectionLoss, 'closed');
      this.#current ??= this.#start();
      const session = this.#current;
      if (session.ready || (await session.whenReady(until))) return session;
      const { cause } = session;
      if (session.ended && cause !== undefined && !isTransient(cause)) throw cause;
      if (this.#clock.now() >= until) {
        throw cause === undefined
          ? new ZooKeeperError(CODE.operationTimeout, 'no session yet')
          : new ZooKeeperError(CODE.connectionLoss, undefined, { cause });
      }
    }
  }

  /** The present session if it is ready, for who would rather not wait a turn. */
  get readyNow(): Session | undefined {
    return this.#current?.ready === true && !this.#closed ? this.#current : undefined;
  }

  /** The present session, ready or not. */
  get present(): Session | undefined {
    return this.#current;
  }

  #start(): Session {
    const session: Session = new Session(this.#settings, this.#clock, {
      ended: (cause) => {
        // At once, so that waiters find one; but after a refusal only when somebody asks again.
        this.#current = this.#closed || !isTransient(cause) ? undefined : this.#start();
        this.#ended(session, cause);
      },
    });
    return session;
  }

  async close(until: number): Promise<void> {
    this.#closed = true;
    await this.#current?.close(until);
  }
}

function readStat(stat: Stat): NodeStat {
  return {
    czxid: stat.czxid.readBigInt64BE(0),
    modifiedAt: Number(stat.mtime.readBigInt64BE(0)),
    session: stat.ephemeralOwner.readBigInt64BE(0),
    children: stat.numChildren,
  };
}

async function unlessMissing<T>(reply: Promise<T>): Promise<T | undefined> {
  try {
    return await reply;
  } catch (error) {
    if (hasCode(error, CODE.noNode)) return undefined;
    throw error;
  }
}
