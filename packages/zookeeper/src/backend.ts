import {
  type BackendHost,
  type Capabilities,
  type Claim,
  type Contended,
  type Diagnosis,
  type Grant,
  type LockBackend,
  type LockState,
  MAX_DURATION,
  type Renewal,
  systemClock,
  type Timer,
  UnsupportedError,
} from '@holdfast/core';
import { diagnose } from './diagnose.js';
import { CODE, hasCode, isUnanswered, toBackendError, ZooKeeperError } from './errors.js';
import { type Contender, decodeName, encodeName, inOrder, isOwnedBy, nodePrefix, ownerOf } from './names.js';
import { readOptions, type Settings, type ZooKeeperBackendOptions } from './options.js';
import { Parents } from './parents.js';
import { type NodeStat, type Session, Sessions } from './session.js';
import { Turn } from './turn.js';

/**
 * Locks in ZooKeeper.
 *
 * ```ts
 * const locks = await createLocks(zookeeperBackend({ url: 'zookeeper://127.0.0.1:2181' }));
 * ```
 *
 * @throws ConfigError, InvalidArgumentError
 */
export function zookeeperBackend(options: ZooKeeperBackendOptions): LockBackend {
  return new ZooKeeperBackend(readOptions(options));
}

/** A claim's place in a lock's queue: one ephemeral sequential node, in one session. */
interface Place {
  readonly claim: Claim;
  /** The path of the lock's node, whose children are the queue. */
  readonly parent: string;
  /** The session that the node was made in, or may have been. */
  session?: Session;
  node?: { readonly node: string; readonly path: string; readonly czxid: bigint };
  /** A create is unanswered: the node may be there, under our owner's name. */
  unsure: boolean;
  /** At the head: the lock is ours. */
  granted: boolean;
  /** Of a held node: `watched` says that we shall hear when somebody deletes it. */
  presence: 'unknown' | 'watched' | 'gone';
  /** While waiting for the node ahead to go. */
  turn?: Turn;
  /** The attempt under way, which clean-up must not overtake. */
  busy?: Promise<unknown>;
  leaving?: Promise<boolean>;
  mark?: Timer | undefined;
}

/** What a claim's node holds, as JSON. */
interface NodeData {
  /** The timeout of the claim's session, ms: how long the node outlives a holder that dies. */
  readonly session?: number;
  readonly metadata?: string | undefined;
  /** Released; the name stays taken until the node goes. */
  readonly tail?: true;
}

/** How long the outcome of a release whose caller has gone is kept for the next one. */
const REMEMBERED = 60_000;
/** A hold that had to wait is marked with its time of acquisition if it lasts this long. */
const MARK_AFTER = 100;
const BATCH = 100;

/**
 * The lock recipe of ZooKeeper's documentation. Under a parent for each name, each claim makes an ephemeral sequential
 * node `<owner>-<sequence>`; the lowest sequence holds the lock; each other watches the node before its own and looks
 * again when that goes. So the queue is first in, first out, and one waiter is woken for each hand-over. The fencing
 * token is the transaction that made the node (its czxid), which rises over the whole ensemble.
 *
 * What makes it safe over a network:
 * - A create is sent once. If its answer is lost, the node is found by the owner in its name, and it is ours only if it
 *   belongs to our present session.
 * - That earlier nodes are gone is a fact that no lagging server can unsay; that our own is there rests on the session,
 *   whose validity each grant carries (see {@link Session}).
 * - Whatever may be ours is deleted until the server has said so, or the session has ended.
 */
class ZooKeeperBackend implements LockBackend {
  readonly name = 'zookeeper';
  readonly prefix: string;
  readonly #settings: Settings;
  /** The node whose children are the locks. */
  readonly #home: string;
  readonly #places = new Map<string, Place>();
  /** Of the backend's own, all taken back by `close`. */
  readonly #timers = new Set<Timer>();
  #host: BackendHost = { clock: systemClock, commandTimeout: 5000, lost() {}, report() {} };
  #closed = false;
  #server: { readonly sessions: Sessions; readonly parents: Parents } | undefined;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.prefix = settings.prefix;
    this.#home = `${settings.root}/locks`;
  }

  async open(host?: BackendHost): Promise<Capabilities> {
    if (host !== undefined) this.#host = host;
    const { clock, commandTimeout } = this.#host;
    const settings = { ...this.#settings, home: `${this.#settings.root}/sessions`, commandTimeout };
    const sessions = new Sessions(settings, clock, (session, cause) => this.#sessionEnded(session, cause));
    const parents = new Parents(clock, () => sessions.ready(this.#deadline()), commandTimeout);
    this.#server = { sessions, parents };
    // A first connection takes several requests.
    const patience = 2 * commandTimeout;
    const timeout = await this.#ask('be reached', undefined, async (session) => session.timeout, patience);
    parents.sweep(this.#home).catch((error) => this.#host.report(toBackendError(error, 'sweep')));
    return {
      fairness: 'fifo',
      wake: 'push',
      expiry: 'session',
      consistency: 'linearizable',
      crossProcess: true,
      transferable: false,
      minHold: 'session',
      grace: timeout,
      ttl: { min: timeout, max: MAX_DURATION, granularity: 1 },
    };
  }

  async attempt(claim: Claim): Promise<Grant | Contended> {
    const place = this.#places.get(claim.owner) ?? this.#newPlace(claim);
    const work = this.#ask('acquire', claim.name, (session, until) => this.#attempt(place, session, until));
    place.busy = work.catch(() => undefined);
    return await work;
  }

  #newPlace(claim: Claim): Place {
    const parent = `${this.#home}/${encodeName(claim.name)}`;
    const place: Place = { claim, parent, unsure: false, granted: false, presence: 'unknown' };
    this.#places.set(claim.owner, place);
    return place;
  }

  async #attempt(place: Place, session: Session, until: number): Promise<Grant | Contended> {
    // Released while this waited for the session: nothing is to be sent any more.
    if (place.leaving !== undefined) return {};
    let children = await this.#join(place, session, until);
    for (;;) {
      const queue = inOrder(children);
      const index = queue.findIndex(({ node }) => node === place.node?.node);
      if (index === 0) return this.#grant(place, session);
      const ahead = queue[index - 1];
      if (ahead === undefined) {
        // Somebody deleted ours: at the end again.
        this.#forgetNode(place);
        children = await this.#join(place, session, until);
        continue;
      }
      if (!place.claim.queue) return await this.#refuse(place, session, queue, until);
      const stat = await this.#watchAhead(place, session, `${place.parent}/${ahead.node}`, until);
      if (stat !== undefined) return { ...contended(queue, index === 1 ? stat : undefined), position: index };
      children = await this.#list(place.parent, session, until);
    }
  }

  /** Sees to it that the claim has a node, and lists the queue. */
  async #join(place: Place, session: Session, until: number): Promise<readonly string[]> {
    if (place.session !== session) this.#forgetNode(place);
    place.session = session;
    if (place.node !== undefined) return await this.#list(place.parent, session, until);
    if (place.unsure) {
      const children = await this.#list(place.parent, session, until);
      if (await this.#find(place, children, session, until)) return children;
    }
    for (;;) {
      const children = await this.#create(place, session, until);
      if (children !== undefined) return children;
      await session.makePath(place.parent, until);
    }
  }

  async #list(parent: string, session: Session, until: number): Promise<readonly string[]> {
    return (await session.children(parent, until)) ?? [];
  }

  /**
   * Sends the create and the listing together, after that of the parent where it may be missing.
   *
   * @returns undefined when the parent was missing
   */
  async #create(place: Place, session: Session, until: number): Promise<readonly string[] | undefined> {
    const { claim, parent } = place;
    place.unsure = true;
    // If that fails, so does the create.
    if (!this.#parents.has(parent)) session.make(parent, until).catch(() => undefined);
    const creating = session.createInLine(
      `${parent}/${nodePrefix(claim.owner)}`,
      encodeData(claim, session),
      until,
    );
    const listing = session.children(parent, until);
    // Of interest only once the create has succeeded.
    listing.catch(() => undefined);
    try {
      const { path, czxid } = await creating;
      this.#own(place, path, czxid);
    } catch (error) {
      // An answer, whichever, says that there is no node.
      if (!isUnanswered(error)) place.unsure = false;
      if (hasCode(error, CODE.noNode)) return undefined;
      throw error;
    }
    return (await listing) ?? [];
  }

  /** Looks for the node of a create whose answer was lost. One of an earlier session, with the same owner, is not ours. */
  async #find(place: Place, children: readonly string[], session: Session, until: number): Promise<boolean> {
    for (const contender of inOrder(children)) {
      if (!isOwnedBy(place.claim.owner, contender)) continue;
      const path = `${place.parent}/${contender.node}`;
      const stat = await session.stat(path, until);
      if (stat?.session !== session.id) continue;
      this.#own(place, path, stat.czxid);
      return true;
    }
    place.unsure = false;
    return false;
  }

  #own(place: Place, path: string, czxid: bigint): void {
    const node = path.slice(place.parent.length + 1);
    place.unsure = false;
    place.node = { node, path, czxid };
    this.#parents.enter(place.parent);
  }

  #forgetNode(place: Place): void {
    if (place.node !== undefined) this.#parents.leave(place.parent);
    delete place.node;
    place.unsure = false;
    place.granted = false;
    place.presence = 'unknown';
  }

  /** A refused try leaves nothing behind. */
  async #refuse(
    place: Place,
    session: Session,
    queue: readonly Contender[],
    until: number,
  ): Promise<Contended> {
    place.leaving ??= this.#deleteCertainly(place, session);
    await this.#within(place.leaving, until);
    this.#drop(place);
    return contended(queue);
  }

  /** @returns undefined when the node ahead has gone already */
  async #watchAhead(
    place: Place,
    session: Session,
    path: string,
    until: number,
  ): Promise<NodeStat | undefined> {
    place.turn?.cancel();
    const turn = new Turn((wake) => session.unwatch(path, wake));
    place.turn = turn;
    const stat = await session.watch(path, until, turn.wake);
    if (stat === undefined) delete place.turn;
    return stat;
  }

  #grant(place: Place, session: Session): Grant {
    const { claim, node } = place;
    place.granted = true;
    if (place.turn !== undefined) this.#markLater(place, session);
    place.turn?.cancel();
    delete place.turn;
    return { claim, fencingToken: node?.czxid ?? 0n, ...validity(claim.ttl, session) };
  }

  /**
   * Writing to a node that had to wait moves its time of modification to that of the grant, for `inspect`. Short holds
   * do without.
   */
  #markLater(place: Place, session: Session): void {
    place.mark = this.#later(MARK_AFTER, () => {
      const { node } = place;
      if (node === undefined || place.leaving !== undefined) return;
      // A mark that fails leaves the time of joining.
      session.write(node.path, encodeData(place.claim, session), this.#deadline()).catch(() => undefined);
    });
  }

  async awaitTurn(claim: Claim, _contended: Contended, signal: AbortSignal): Promise<void> {
    await this.#places.get(claim.owner)?.turn?.wait(signal);
  }

  async renew(grants: readonly Grant[]): Promise<readonly Renewal[]> {
    return await this.#ask('renew', undefined, async (session, until) => {
      await session.fresh(until);
      // That the session lives is known here. Whether a node was deleted by force is asked once for each connection;
      // where thousands of requests are under way, the answer may come after this one, and is told then.
      const looks = grants.map((grant) => this.#watchOwn(this.#held(grant), session, until));
      await this.#atMost(session.timeout / 20, Promise.all(looks));
      return grants.map((grant) => this.#renewal(grant, session));
    });
  }

  #renewal(grant: Grant, session: Session): Renewal {
    const place = this.#held(grant);
    if (place === undefined || place.presence === 'gone') return { renewed: false };
    if (place.session !== session) return { renewed: false, reason: 'session' };
    return { renewed: true, ...validity(grant.ttl, session) };
  }

  #held({ claim, fencingToken }: Grant): Place | undefined {
    const place = this.#places.get(claim.owner);
    return place?.granted === true && place.node?.czxid === fencingToken ? place : undefined;
  }

  /** Watches a held node, unless it is watched: never rejects. */
  async #watchOwn(place: Place | undefined, session: Session, until: number): Promise<void> {
    const node = place?.node;
    if (place === undefined || node === undefined || place.presence !== 'unknown') return;
    const gone = (): void => {
      place.presence = 'unknown';
      if (session.ready && place.node === node && place.leaving === undefined)
        void this.#gone(place, session);
    };
    // Set before the answer, since the event may come right behind it.
    place.presence = 'watched';
    try {
      const stat = await session.watch(node.path, until, gone);
      // Unless it was given back meanwhile.
      if (stat === undefined && place.node === node) await this.#gone(place, session);
    } catch {
      place.presence = 'unknown';
    }
  }

  /** A held node was deleted: by force, or with its session, of which the heartbeat tells. */
  async #gone(place: Place, session: Session): Promise<void> {
    place.presence = 'gone';
    try {
      await session.heartbeat(this.#deadline());
    } catch {
      return;
    }
    if (place.leaving === undefined) this.#host.lost(place.claim.owner, 'superseded');
  }

  async extend(grant: Grant, ttl: number): Promise<Renewal> {
    return await this.#ask('extend', grant.claim.name, async (session, until) =>
      (await this.#confirm(grant, session, until))
        ? { renewed: true, ...validity(ttl, session) }
        : { renewed: false },
    );
  }

  async verify(grant: Grant): Promise<boolean> {
    return await this.#ask('verify', grant.claim.name, (session, until) =>
      this.#confirm(grant, session, until),
    );
  }

  /** A write, and a read behind it: a read alone may be answered by a server that is cut off. */
  async #confirm(grant: Grant, session: Session, until: number): Promise<boolean> {
    const place = this.#held(grant);
    if (place?.node === undefined || place.session !== session) return false;
    const [, stat] = await Promise.all([session.heartbeat(until), session.stat(place.node.path, until)]);
    return stat?.czxid === grant.fencingToken;
  }

  async release(claim: Claim, options?: { readonly keepFor?: number }): Promise<boolean> {
    const place = this.#places.get(claim.owner);
    if (place === undefined) return false;
    place.leaving ??= this.#leave(place, options?.keepFor ?? 0);
    try {
      const removed = await this.#within(place.leaving, this.#deadline());
      // Of several calls, one is told so.
      return this.#drop(place) && removed;
    } catch (error) {
      this.#forgetLater(place);
      throw toBackendError(error, 'release', claim.name);
    }
  }

  async #leave(place: Place, keepFor: number): Promise<boolean> {
    place.mark?.cancel();
    place.turn?.cancel();
    await place.busy;
    const { session } = place;
    if (session === undefined) return false;
    return keepFor > 0 ? this.#becomeTail(place, session, keepFor) : this.#deleteCertainly(place, session);
  }

  /**
   * Deletes the claim's node, in the background if the connection is away, until its session ends.
   *
   * @returns true if that ended a hold
   */
  async #deleteCertainly(place: Place, session: Session): Promise<boolean> {
    let asked = false;
    const deleted = await session.certainly(async (until) => {
      if (place.unsure) {
        await this.#find(place, await this.#list(place.parent, session, until), session, until);
      }
      if (place.node === undefined) return false;
      const again = asked;
      asked = true;
      const removed = await session.remove(place.node.path, until);
      // Gone, after a request whose answer was lost: that was it.
      return (removed || again) && place.granted;
    });
    this.#forgetNode(place);
    return deleted === true;
  }

  /** Keeps the node, as nobody's, for so long or until the session ends. */
  async #becomeTail(place: Place, session: Session, keepFor: number): Promise<boolean> {
    const { node } = place;
    if (node === undefined) return false;
    const kept = await session.certainly((until) => session.write(node.path, TAIL, until));
    if (kept !== true) return false;
    this.#later(keepFor, () => {
      this.#deleteCertainly(place, session).catch((error) =>
        this.#host.report(toBackendError(error, 'end the minHold of', place.claim.name)),
      );
    });
    return true;
  }

  #drop(place: Place): boolean {
    return this.#places.get(place.claim.owner) === place && this.#places.delete(place.claim.owner);
  }

  /** A release goes on after its caller was told "unknown": its outcome is kept for the caller's next try. */
  #forgetLater(place: Place): void {
    const forget = (): void => void this.#later(REMEMBERED, () => this.#drop(place));
    place.leaving?.then(forget, forget);
  }

  async adopt(grant: Grant): Promise<Grant | undefined> {
    throw new UnsupportedError(
      'a ZooKeeper lock belongs to the session of the process that took it and cannot be adopted by another',
      { lockName: grant.claim.name },
    );
  }

  async inspect(name: string): Promise<LockState> {
    return await this.#ask('inspect', name, async (session, until) => {
      // A write first: a lagging server's answer then is no older than this call.
      await session.heartbeat(until);
      return await this.#inspect(name, session, until);
    });
  }

  async #inspect(name: string, session: Session, until: number): Promise<LockState> {
    const parent = `${this.#home}/${encodeName(name)}`;
    for (;;) {
      const [head, ...others] = inOrder(await this.#list(parent, session, until));
      if (head === undefined) return { name, held: false, waiters: [] };
      const node = await session.read(`${parent}/${head.node}`, until);
      if (node === undefined) continue;
      const { tail, metadata, session: timeout } = decodeData(node.data);
      const waiters = others.map((waiter, index) => ({ owner: ownerOf(waiter), position: index + 1 }));
      if (tail === true) return { name, held: true, waiters };
      return {
        name,
        held: true,
        owner: ownerOf(head),
        fencingToken: node.stat.czxid,
        acquiredAt: new Date(node.stat.modifiedAt),
        ...(timeout === undefined ? {} : { expiresIn: timeout }),
        ...(metadata === undefined ? {} : { metadata }),
        waiters,
      };
    }
  }

  async *list(prefix = ''): AsyncIterable<LockState> {
    const names = await this.#ask('list locks', undefined, async (session, until) => {
      await session.heartbeat(until);
      return (await this.#list(this.#home, session, until)).map(decodeName);
    });
    const wanted = names.filter((name) => name?.startsWith(prefix) === true);
    for (let start = 0; start < wanted.length; start += BATCH) {
      const batch = wanted.slice(start, start + BATCH);
      const states = await this.#ask('list locks', undefined, (session, until) =>
        Promise.all(batch.map((name) => this.#inspect(name ?? '', session, until))),
      );
      yield* states.filter(({ held }) => held);
    }
  }

  async forceRelease(name: string, expected?: bigint): Promise<boolean> {
    return await this.#ask('force the release of', name, async (session, until) => {
      await session.heartbeat(until);
      const parent = `${this.#home}/${encodeName(name)}`;
      for (;;) {
        const [head] = inOrder(await this.#list(parent, session, until));
        if (head === undefined) return false;
        const path = `${parent}/${head.node}`;
        const stat = await session.stat(path, until);
        if (stat === undefined) continue;
        // A sequence is never used again under its parent, so that this path is this grant, and deleting it is exact.
        if (expected !== undefined && stat.czxid !== expected) return false;
        if (await session.remove(path, until)) return true;
      }
    });
  }

  async diagnose(): Promise<readonly Diagnosis[]> {
    return await this.#ask('be examined', undefined, (session, until) =>
      diagnose(this.#settings, session, this.#host.clock, until),
    );
  }

  async close(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#closed = true;
    const until = this.#deadline();
    await server.parents.close(server.sessions.present, until);
    await server.sessions.close(until);
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    this.#places.clear();
  }

  /** The nodes went with it: holders are told, waiters join again with the next session. */
  #sessionEnded(session: Session, cause: Error): void {
    for (const place of [...this.#places.values()]) {
      if (place.session !== session) continue;
      const { granted, leaving, turn } = place;
      place.mark?.cancel();
      this.#forgetNode(place);
      turn?.wake();
      if (!granted) continue;
      this.#drop(place);
      if (leaving === undefined) this.#host.lost(place.claim.owner, 'session', cause);
    }
  }

  /** Runs requests on the ready session, all within `timeout` ms. */
  async #ask<T>(
    doing: string,
    lockName: string | undefined,
    work: (session: Session, until: number) => Promise<T>,
    timeout = this.#host.commandTimeout,
  ): Promise<T> {
    const until = this.#host.clock.now() + timeout;
    try {
      if (this.#server === undefined) throw new ZooKeeperError(CODE.connectionLoss, 'not opened');
      const { sessions } = this.#server;
      return await work(sessions.readyNow ?? (await sessions.ready(until)), until);
    } catch (error) {
      throw toBackendError(error, doing, lockName);
    }
  }

  /** Waits no longer than that; the work goes on, and must not reject. */
  #atMost(ms: number, work: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#host.clock.setTimer(ms, resolve);
      void work.then(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  /** Waits no longer than `until`; the work goes on. */
  #within<T>(work: Promise<T>, until: number): Promise<T> {
    const { clock } = this.#host;
    return new Promise((resolve, reject) => {
      const timer = clock.setTimer(until - clock.now(), () => {
        reject(
          new ZooKeeperError(CODE.operationTimeout, undefined, {
            cause: this.#server?.sessions.present?.cause,
          }),
        );
      });
      work.then(resolve, reject).finally(() => timer.cancel());
    });
  }

  get #parents(): Parents {
    if (this.#server === undefined) throw new ZooKeeperError(CODE.connectionLoss, 'not opened');
    return this.#server.parents;
  }

  #later(delay: number, callback: () => void): Timer | undefined {
    if (this.#closed) return undefined;
    const timer = this.#host.clock.setTimer(delay, () => {
      this.#timers.delete(timer);
      callback();
    });
    this.#timers.add(timer);
    return {
      cancel: () => {
        this.#timers.delete(timer);
        timer.cancel();
      },
    };
  }

  #deadline(): number {
    return this.#host.clock.now() + this.#host.commandTimeout;
  }
}

/** The session's life is the grant's, whatever the claim's ttl says. */
function validity(ttl: number, session: Session): { ttl: number; validFor: number; from: number } {
  return { ttl: Math.max(ttl, session.timeout), validFor: session.timeout, from: session.validFrom };
}

function contended(queue: readonly Contender[], head?: NodeStat): Contended {
  const [holder] = queue;
  if (holder === undefined) return {};
  const since = head === undefined ? {} : { since: new Date(head.modifiedAt) };
  return { holder: { owner: ownerOf(holder), ...since } };
}

function encodeData({ metadata }: Claim, { timeout }: Session): Buffer {
  return Buffer.from(JSON.stringify({ session: timeout, metadata } satisfies NodeData));
}

const TAIL = Buffer.from(JSON.stringify({ tail: true } satisfies NodeData));

/** A node that somebody else wrote says nothing. */
function decodeData(data: Buffer): NodeData {
  try {
    const value: unknown = JSON.parse(data.toString());
    if (typeof value !== 'object' || value === null) return {};
    const { session, metadata, tail } = value as Record<keyof NodeData, unknown>;
    return {
      ...(typeof session === 'number' ? { session } : {}),
      ...(typeof metadata === 'string' ? { metadata } : {}),
      ...(tail === true ? { tail } : {}),
    };
  } catch {
    return {};
  }
}
