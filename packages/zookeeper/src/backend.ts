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
  UnsupportedError,
} from '@holdfast/core';
import { Desk } from './desk.js';
import { diagnose } from './diagnose.js';
import { CODE, toBackendError, ZooKeeperError } from './errors.js';
import { Forcing } from './forcing.js';
import { Keeping } from './keeping.js';
import { Leaving } from './leaving.js';
import { Looking } from './looking.js';
import { readOptions, type Settings, type ZooKeeperBackendOptions } from './options.js';
import { Parents } from './parents.js';
import { Places } from './places.js';
import { type Session, Sessions } from './session.js';
import { Taking } from './taking.js';

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

/** An open backend and its parts. */
interface Open {
  readonly desk: Desk;
  readonly parents: Parents;
  readonly places: Places;
  readonly taking: Taking;
  readonly keeping: Keeping;
  readonly forcing: Forcing;
  readonly leaving: Leaving;
  readonly looking: Looking;
}

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
  #opened: Open | undefined;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.prefix = settings.prefix;
  }

  async open(host: BackendHost = ALONE): Promise<Capabilities> {
    const { clock, commandTimeout } = host;
    const { root } = this.#settings;
    const settings = { ...this.#settings, home: `${root}/sessions`, commandTimeout };
    const sessions = new Sessions(settings, clock, (session, cause) => this.#sessionEnded(session, cause));
    const desk = new Desk(host, sessions);
    const parents = new Parents(clock, () => sessions.ready(desk.deadline()), commandTimeout);
    const places = new Places(`${root}/locks`, parents);
    const leaving = new Leaving(desk, places);
    this.#opened = {
      desk,
      parents,
      places,
      leaving,
      taking: new Taking(desk, places, leaving),
      keeping: new Keeping(desk, places),
      forcing: new Forcing(desk, places),
      looking: new Looking(desk, places),
    };
    // A first connection takes several requests.
    const patience = 2 * commandTimeout;
    const timeout = await desk.ask('be reached', undefined, async (session) => session.timeout, patience);
    parents.sweep(places.home).catch((error) => host.report(toBackendError(error, 'sweep')));
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
    return await this.#open.taking.attempt(claim);
  }

  async awaitTurn(claim: Claim, _contended: Contended, signal: AbortSignal): Promise<void> {
    await this.#open.taking.awaitTurn(claim, signal);
  }

  async renew(grants: readonly Grant[]): Promise<readonly Renewal[]> {
    return await this.#open.keeping.renew(grants);
  }

  async extend(grant: Grant, ttl: number): Promise<Renewal> {
    return await this.#open.keeping.extend(grant, ttl);
  }

  async verify(grant: Grant): Promise<boolean> {
    return await this.#open.keeping.verify(grant);
  }

  async release(claim: Claim, options?: { readonly keepFor?: number }): Promise<boolean> {
    return await this.#open.leaving.release(claim, options?.keepFor ?? 0);
  }

  async adopt(grant: Grant): Promise<Grant | undefined> {
    throw new UnsupportedError(
      'a ZooKeeper lock belongs to the session of the process that took it and cannot be adopted by another',
      { lockName: grant.claim.name },
    );
  }

  async inspect(name: string): Promise<LockState> {
    return await this.#open.looking.inspect(name);
  }

  async *list(prefix = ''): AsyncIterable<LockState> {
    yield* this.#open.looking.list(prefix);
  }

  async forceRelease(name: string, expected?: bigint): Promise<boolean> {
    return await this.#open.forcing.forceRelease(name, expected);
  }

  async diagnose(): Promise<readonly Diagnosis[]> {
    const { desk } = this.#open;
    return await desk.ask('be examined', undefined, (session, until) =>
      diagnose(this.#settings, session, desk.host.clock, until),
    );
  }

  async close(): Promise<void> {
    if (this.#opened === undefined) return;
    const { desk, parents, places } = this.#opened;
    const { sessions } = desk;
    desk.closing();
    const until = desk.deadline();
    // A request that waits to be sent has no deadline of its own, and the session must be ended besides.
    await desk.atMost(desk.host.commandTimeout / 2, parents.close(sessions.present, until));
    await sessions.close(until);
    desk.close();
    places.clear();
  }

  /** The nodes went with it: holders are told, waiters join again with the next session. */
  #sessionEnded(session: Session, cause: Error): void {
    const { desk, places } = this.#open;
    for (const place of places.in(session)) {
      const { granted, leaving, turn } = place;
      place.mark?.cancel();
      places.forgetNode(place);
      turn?.wake();
      if (!granted) continue;
      places.drop(place);
      if (leaving === undefined) desk.host.lost(place.claim.owner, 'session', cause);
    }
  }

  get #open(): Open {
    if (this.#opened !== undefined) return this.#opened;
    throw toBackendError(new ZooKeeperError(CODE.connectionLoss, 'not opened'), 'be asked');
  }
}

/** Without core: nobody hears of a loss or a fault but by asking. */
const ALONE: BackendHost = {
  clock: systemClock,
  commandTimeout: 5_000,
  lost: () => undefined,
  report: () => undefined,
};
