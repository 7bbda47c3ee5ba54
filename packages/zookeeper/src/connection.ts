/// <reference path="./node-zookeeper-client.d.ts" />
import { type Clock, type Deadline, Deadlines, type Timer } from '@holdfast/core';
import ConnectionManager from 'node-zookeeper-client/lib/ConnectionManager.js';
import jute, { type Response } from 'node-zookeeper-client/lib/jute/index.js';
import { CODE, ZooKeeperError } from './errors.js';
import { FrameReader, NotZooKeeperError } from './frames.js';
import type { Acl, Server } from './options.js';

/** What a connection tells its session. Nothing here may throw. */
export interface ConnectionEvents {
  /** The server took us: for the first time, or again with the same session. */
  connected(): void;
  /** The connection went, or could not be made. The next one is under way. */
  disconnected(cause: Error): void;
  /** The end: the session has expired, or the server refuses us for good. */
  ended(cause: ZooKeeperError | NotZooKeeperError): void;
}

/** How to reach the servers, and as whom. */
export interface ConnectionSettings {
  readonly servers: readonly Server[];
  readonly credentials: readonly { readonly scheme: string; readonly auth: Buffer }[];
  /** ms, as asked for; the server answers with its own. */
  readonly sessionTimeout: number;
}

const { STATES } = ConnectionManager;
const { OP_CODES, protocol, TransactionRequest } = jute;

/** A first answer is a handshake: protocol version, timeout, session, password, and perhaps a flag. */
const HANDSHAKE_LENGTHS: ReadonlySet<number> = new Set([36, 37]);

/** The client knows these alone and throws at any other in its socket handler. */
const KNOWN_CODES: ReadonlySet<number> = new Set([
  0, -1, -2, -3, -4, -5, -6, -7, -8, -100, -101, -102, -103, -108, -110, -111, -112, -113, -114, -115,
]);
const SYSTEM_ERROR = -1;

/**
 * How many requests may be unanswered. Answers come in order, and a heartbeat must not wait behind the ten thousand
 * requests of a process that holds as many locks until its session counts as silent. A server reads on up to a thousand.
 */
const WINDOW = 256;

type Packet = ConnectionManager['packetQueue']['queue'][number];

/** A request, and who wants to know when it leaves. */
interface Parcel {
  readonly packet: Packet;
  sent(): void;
}

const CLOSED = 'the server closed the connection';
/** How it looks when our handshake was still on its way. */
const CUT_OFF: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE']);
/** A server gives no reason. */
const CLOSED_EARLY = `${CLOSED} before the handshake: it does not serve now, has as many connections from here as its maxClientCnxns allows, or speaks TLS, which this client does not`;

/**
 * One session's connection: node-zookeeper-client 1.1.3 behind guards against its defects. Only this file knows that
 * client.
 *
 * - **Every request has a deadline**, from when it is sent, and is only ever sent on a live connection. The client keeps requests while
 *   offline, sends them later, and forgets them for ever after expiry.
 * - **Every handshake has a deadline.** The client waits for ever where TCP connects and nobody answers.
 * - **We cut the frames.** The client's buffer survives a reconnect, where a cut frame becomes a false expiry; and its
 *   recursion copies the rest of the bytes once for each answer.
 * - **Nothing escapes from a socket's handler.** The client throws at an error code that it does not know.
 * - **Watches end with the connection**: each is called, and whoever still cares looks again. The client re-sends all of
 *   them in one packet, which a server refuses above its `jute.maxbuffer`, and tells none of an expiry.
 * - The first xid is 1 (0 wedges a throttled session), and it starts again before it leaves 32 bits.
 * - Its timers and sockets do not keep the process alive.
 */
export class Connection {
  readonly #manager: ConnectionManager;
  readonly #clock: Clock;
  readonly #deadlines: Deadlines;
  readonly #events: ConnectionEvents;
  readonly #servers: readonly Server[];
  readonly #watches = new Map<string, Set<() => void>>();
  #frames = new FrameReader();
  #state: 'connecting' | 'connected' | 'closed' = 'connecting';
  /** Of the attempt under way, or the pause before it. */
  #handshake: Timer | undefined;
  #handshakeSent = 0;
  #failures = 0;
  #nextServer = 0;
  /** What went wrong with the present socket. */
  #fault: Error | undefined;
  /** Why there is no connection, while there is none. */
  #lastError: Error | undefined;
  /** The code in the frame that the client is reading: its own error has only those that it knows. */
  #code = 0;
  /** What waits until fewer than {@link WINDOW} requests are unanswered. */
  readonly #backlog: Parcel[] = [];
  #inTurn = false;
  readonly #lastOfTurn: (() => void)[] = [];
  readonly #listings = new Map<string, Promise<Response>>();

  constructor(settings: ConnectionSettings, clock: Clock, events: ConnectionEvents) {
    this.#clock = clock;
    this.#deadlines = new Deadlines(clock, { keepAlive: false });
    this.#events = events;
    this.#servers = shuffled(settings.servers);
    // The connection string is ours to parse: the client misreads IPv6, and leaves the chroot to be made.
    const options = { sessionTimeout: settings.sessionTimeout, spinDelay: 0 };
    this.#manager = new ConnectionManager('localhost', options, (state) => this.#changed(state));
    this.#manager.credentials.push(...settings.credentials.map((credential) => ({ ...credential })));
    this.#manager.xid = 1;
    this.#guard();
  }

  /** The session's id, 0 before the first handshake. */
  get sessionId(): bigint {
    return this.#manager.sessionId.readBigInt64BE(0);
  }

  /** The session's timeout in ms, as negotiated once connected. */
  get sessionTimeout(): number {
    return this.#manager.sessionTimeout;
  }

  /** When the last handshake was sent, on the clock. */
  get handshakeSent(): number {
    return this.#handshakeSent;
  }

  /** How many attempts to connect have failed since the last one that did not. */
  get failures(): number {
    return this.#failures;
  }

  get connected(): boolean {
    return this.#state === 'connected';
  }

  start(): void {
    this.#manager.connect();
  }

  /** Ends this connection as if it had broken: the next server is tried. */
  drop(cause: Error): void {
    this.#fault = cause;
    this.#manager.socket?.destroy();
  }

  create(path: string, data: Buffer, acl: Acl, flags: number, until: number): Promise<Response> {
    return this.#request(
      OP_CODES.CREATE,
      new protocol.CreateRequest(path, data, ACLS[acl], flags),
      path,
      until,
    );
  }

  remove(path: string, until: number): Promise<Response> {
    return this.#request(OP_CODES.DELETE, new protocol.DeleteRequest(path, -1), path, until);
  }

  /** Removes one node and makes another, or does neither. */
  async replace(path: string, by: string, acl: Acl, flags: number, until: number): Promise<void> {
    const acls = ACLS[acl].map((record) => ({ toRecord: () => record }));
    const payload = new TransactionRequest([
      { type: OP_CODES.DELETE, path, version: -1 },
      { type: OP_CODES.CREATE, path: by, data: Buffer.alloc(0), acls, mode: flags },
    ]);
    const { payload: reply } = await this.#request(OP_CODES.MULTI, payload, path, until);
    // The one that failed comes after those that were undone, whose code is 0, and before those that were not tried.
    const failure = reply?.results?.find(({ err = 0 }) => err !== 0);
    if (failure?.err !== undefined) throw new ZooKeeperError(failure.err, path);
  }

  exists(path: string, until: number): Promise<Response> {
    return this.#request(OP_CODES.EXISTS, new protocol.ExistsRequest(path, false), path, until);
  }

  getData(path: string, until: number): Promise<Response> {
    return this.#request(OP_CODES.GET_DATA, new protocol.GetDataRequest(path, false), path, until);
  }

  /** @param urgent sent before whatever waits to be sent */
  setData(path: string, data: Buffer, until: number, urgent = false): Promise<Response> {
    const payload = new protocol.SetDataRequest(path, data, -1);
    return this.#request(OP_CODES.SET_DATA, payload, path, until, { urgent });
  }

  /**
   * Asked for several times in one turn of the event loop, by many waiters of one lock, it is sent once, as the last
   * request of that turn.
   */
  getChildren(path: string, until: number): Promise<Response> {
    const asked = this.#listings.get(path);
    if (asked !== undefined) return asked;
    const listing = new Promise<Response>((resolve, reject) => {
      this.#lastOfTurn.push(() => {
        this.#listings.delete(path);
        const payload = new protocol.GetChildren2Request(path, false);
        this.#request(OP_CODES.GET_CHILDREN2, payload, path, until).then(resolve, reject);
      });
    });
    this.#listings.set(path, listing);
    this.#endTurnSoon();
    return listing;
  }

  /** @param watch called once, when a child comes or goes, the node goes, or the connection does */
  watchChildren(path: string, until: number, watch: () => void): Promise<Response> {
    const payload = new protocol.GetChildren2Request(path, true);
    return this.#request(OP_CODES.GET_CHILDREN2, payload, path, until, { watch });
  }

  /** Forgets a watch. The server's own goes with its node or with the connection. */
  unwatch(path: string, watch: () => void): void {
    const watches = this.#watches.get(path);
    if (watches?.delete(watch) === true && watches.size === 0) this.#watches.delete(path);
  }

  /** Ends the session at the server, and with it its nodes: before whatever waits to be sent. */
  endSession(until: number): Promise<Response> {
    return this.#request(OP_CODES.CLOSE_SESSION, null, 'session', until, { urgent: true });
  }

  close(): void {
    this.#state = 'closed';
    this.#handshake?.cancel();
    this.#deadlines.stop();
    this.#manager.socket?.destroy();
    this.#dropWatches();
  }

  #request(
    type: number,
    payload: object | null,
    path: string,
    until: number,
    { watch, urgent = false }: { readonly watch?: () => void; readonly urgent?: boolean } = {},
  ): Promise<Response> {
    if (this.#state !== 'connected') {
      return Promise.reject(new ZooKeeperError(CODE.connectionLoss, path, { cause: this.#lastError }));
    }
    const patience = until - this.#clock.now();
    if (patience <= 0) return Promise.reject(new ZooKeeperError(CODE.operationTimeout, path));
    return new Promise((resolve, reject) => {
      const request = new jute.Request(new protocol.RequestHeader(0, type), payload);
      let deadline: Deadline | undefined;
      // From when it is sent: how long it waits here for its turn says nothing of the server.
      const sent = (): void => {
        deadline = this.#deadlines.set(patience, () => {
          this.#unsend(request);
          reject(new ZooKeeperError(CODE.operationTimeout, path));
        });
      };
      const callback = (error: Error | null, response?: Response): void => {
        if (deadline !== undefined) this.#deadlines.lift(deadline);
        if (error === null && response !== undefined) {
          if (watch !== undefined) this.#watch(path, watch);
          resolve(response);
        } else {
          const unanswered = response === undefined;
          const code = unanswered ? CODE.connectionLoss : this.#code;
          reject(new ZooKeeperError(code, path, { cause: (unanswered && this.#lastError) || error }));
        }
        this.#sendMore();
      };
      const parcel = { packet: { request, callback }, sent };
      if (urgent || (this.#backlog.length === 0 && this.#outstanding < WINDOW)) return this.#send(parcel);
      this.#backlog.push(parcel);
    });
  }

  #sendMore(): void {
    while (this.#state === 'connected' && this.#outstanding < WINDOW) {
      const next = this.#backlog.shift();
      if (next === undefined) return;
      this.#send(next);
    }
  }

  get #outstanding(): number {
    return this.#manager.pendingQueue.length + this.#manager.packetQueue.queue.length;
  }

  #send({ packet, sent }: Parcel): void {
    sent();
    this.#renumber();
    this.#endTurnSoon();
    this.#manager.queue(packet.request, packet.callback);
  }

  /** Requests of one turn of the event loop leave in one write. */
  #endTurnSoon(): void {
    if (this.#inTurn) return;
    this.#inTurn = true;
    const { socket } = this.#manager;
    socket?.cork();
    process.nextTick(() => {
      for (const send of this.#lastOfTurn.splice(0)) send();
      this.#inTurn = false;
      socket?.uncork();
    });
  }

  /** The client still has it where the socket takes no more; a request whose time is up must not be sent later. */
  #unsend(request: object): void {
    const { queue } = this.#manager.packetQueue;
    const index = queue.findIndex((packet) => packet.request === request);
    if (index >= 0) queue.splice(index, 1);
  }

  /** The client counts past 32 bits and then throws; answers are matched in order, so starting again is harmless. */
  #renumber(): void {
    if (this.#manager.xid >= 0x7fff_ffff) this.#manager.xid = 1;
  }

  #watch(path: string, watch: () => void): void {
    const watches = this.#watches.get(path);
    if (watches === undefined) this.#watches.set(path, new Set([watch]));
    else watches.add(watch);
  }

  #fire(path: string): void {
    const watches = this.#watches.get(path);
    this.#watches.delete(path);
    for (const watch of watches ?? []) watch();
  }

  #dropWatches(): void {
    for (const path of [...this.#watches.keys()]) this.#fire(path);
  }

  /** Puts our handlers in place of the client's. `connect` binds them anew for each socket. */
  #guard(): void {
    const manager = this.#manager;
    manager.findNextServer = (connect) => this.#connectNext(connect);
    manager.onSocketConnected = this.#contained(() => {
      this.#handshakeSent = this.#clock.now();
      ConnectionManager.prototype.onSocketConnected.call(manager);
    });
    manager.onSocketData = this.#contained((chunk: Buffer) => this.#received(chunk));
    manager.onSocketDrain = this.#contained(() => ConnectionManager.prototype.onSocketDrain.call(manager));
    manager.onSocketTimeout = this.#contained(() =>
      ConnectionManager.prototype.onSocketTimeout.call(manager),
    );
    manager.onSocketError = (error) => {
      const early = this.#state === 'connecting' && CUT_OFF.has((error as NodeJS.ErrnoException).code);
      this.#fault ??= early ? new Error(CLOSED_EARLY, { cause: error }) : error;
    };
    manager.onSocketClosed = (hasError) => this.#closed(hasError);
    manager.watcherManager.emit = (event) => this.#fire(event.path);
  }

  /** Whatever goes wrong in a socket's handler ends the connection, never the process. */
  #contained<A extends unknown[]>(handler: (...args: A) => void): (...args: A) => void {
    return (...args) => {
      try {
        handler(...args);
      } catch (error) {
        const cause = error instanceof Error ? error : new Error(String(error));
        if (cause instanceof NotZooKeeperError && this.#manager.state === STATES.CONNECTING)
          this.#finish(cause);
        else this.drop(cause);
      }
    };
  }

  /** In turn, after a pause that grows once every server has failed. */
  #connectNext(connect: (server: Server) => void): void {
    const rounds = Math.floor(this.#failures / this.#servers.length);
    const longest = Math.min(1000, this.sessionTimeout / 10);
    const pause = rounds === 0 ? 0 : Math.min(longest, 25 * 2 ** rounds) * (0.5 + Math.random() / 2);
    this.#handshake = this.#clock.setTimer(pause, () => {
      const server = this.#servers[this.#nextServer % this.#servers.length];
      if (this.#state === 'closed' || server === undefined) return;
      this.#nextServer += 1;
      this.#frames = new FrameReader();
      this.#manager.pendingBuffer = null;
      connect(server);
      // The client's own timer covers less than ours, and strikes the next socket when this one ends early.
      clearTimeout(this.#manager.connectTimeoutHandler ?? undefined);
      this.#manager.socket?.unref();
      // Two servers that do not answer must leave time for a third before the session ends: see Session.
      const patience = this.sessionTimeout / (this.#servers.length > 1 ? 6 : 3);
      this.#handshake = this.#clock.setTimer(patience, () =>
        this.drop(
          new Error(`no handshake from ${server.host}:${server.port} within ${Math.round(patience)} ms`),
        ),
      );
    });
  }

  #received(chunk: Buffer): void {
    const socket = this.#manager.socket;
    for (const frame of this.#frames.push(chunk)) {
      if (socket?.destroyed !== false) return;
      if (this.#manager.state === STATES.CONNECTING) {
        if (!HANDSHAKE_LENGTHS.has(frame.length - 4)) throw new NotZooKeeperError('no ZooKeeper handshake');
      } else {
        this.#readCode(frame);
      }
      ConnectionManager.prototype.onSocketData.call(this.#manager, frame);
    }
  }

  /** Shows the client a code that it knows, and keeps the real one. */
  #readCode(frame: Buffer): void {
    if (frame.length < 20) return;
    this.#code = frame.readInt32BE(16);
    if (!KNOWN_CODES.has(this.#code)) frame.writeInt32BE(SYSTEM_ERROR, 16);
  }

  #changed(state: number): void {
    if (state === STATES.CONNECTED) {
      this.#handshake?.cancel();
      this.#failures = 0;
      this.#lastError = undefined;
      this.#state = 'connected';
      this.#events.connected();
    } else if (state === STATES.SESSION_EXPIRED) {
      this.#finish(new ZooKeeperError(CODE.sessionExpired));
    } else if (state === STATES.AUTHENTICATION_FAILED) {
      this.#finish(new ZooKeeperError(CODE.authFailed));
    }
  }

  #finish(cause: ZooKeeperError | NotZooKeeperError): void {
    if (this.#state === 'closed') return;
    this.#lastError = cause;
    this.#state = 'closed';
    // Told before the watches are called, so that whoever is called knows why.
    this.#events.ended(cause);
    this.close();
  }

  #closed(hasError: boolean): void {
    this.#handshake?.cancel();
    const wasOpen = this.#state !== 'closed';
    const cause = this.#fault ?? new Error(this.#state === 'connected' ? CLOSED : CLOSED_EARLY);
    if (wasOpen) this.#state = 'connecting';
    this.#failures += 1;
    this.#fault = undefined;
    if (wasOpen) this.#lastError = cause;
    // What was not sent yet must not be sent on the next connection: its callers are told now.
    const waiting = this.#backlog.splice(0).map(({ packet }) => packet);
    const unsent = [...this.#manager.packetQueue.queue.splice(0), ...waiting];
    const inFlight = this.#manager.pendingQueue.splice(0);
    for (const { callback } of [...inFlight, ...unsent]) callback(new ZooKeeperError(CODE.connectionLoss));
    if (wasOpen) this.#events.disconnected(cause);
    this.#dropWatches();
    if (this.#state === 'closed') this.#manager.state = STATES.CLOSING;
    ConnectionManager.prototype.onSocketClosed.call(this.#manager, hasError);
  }
}

const ALL_PERMISSIONS = 31;
const ACLS = {
  open: [new jute.data.ACL(ALL_PERMISSIONS, new jute.data.Id('world', 'anyone'))],
  creator: [new jute.data.ACL(ALL_PERMISSIONS, new jute.data.Id('auth', ''))],
} as const;

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, rank: Math.random() }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ item }) => item);
}
