import {
  BackendError,
  type BackendHost,
  type Capabilities,
  type Claim,
  type Contended,
  type Diagnosis,
  type Grant,
  isHoldfastError,
  type LockBackend,
  type LockState,
  MAX_DURATION,
  type Renewal,
  systemClock,
} from '@holdfast/core';
import { diagnose } from './diagnose.js';
import type { Endpoint } from './endpoint.js';
import { speaksSomethingElse, tlsHint } from './errors.js';
import { Forcing } from './forcing.js';
import { Keeping } from './keeping.js';
import { Keyspace } from './keys.js';
import { Leaving } from './leaving.js';
import { Looking } from './looking.js';
import { Session } from './session.js';
import { PLACE_TTL, Taking } from './taking.js';
import { probe } from './transactions.js';
import { Transport } from './transport.js';

/** How late a server notices that a lease has expired, ms: it looks twice a second. */
const LAG = 1_000;

/** Opening may take longer than one request, within core's own patience with it: connections have to be made. */
const OPENING = 2.4;

/** An open backend and its parts. */
interface Open {
  readonly session: Session;
  readonly taking: Taking;
  readonly keeping: Keeping;
  readonly leaving: Leaving;
  readonly forcing: Forcing;
  readonly looking: Looking;
}

/**
 * Locks on etcd.
 *
 * A claim is one key under the lock's name. The key that was created first is the holder's; the others are the queue, in
 * the order of their create revisions, and the create revision is the fencing token too. A claim that finds nobody is
 * put as the holder's at once. One that finds others is put as waiting, on a short lease that dies with its process; it
 * watches the key before its own, and when that is deleted it puts its own key again, as the holder's and on a lease of
 * its ttl, in a transaction that succeeds only if it is the oldest. Giving back is deleting the key, which wakes the next
 * waiter and nobody else.
 *
 * The order by create revision is that of etcd's own `concurrency` package. Added to it: a place in the queue that does
 * not last as long as a hold, both keys read again after every wait, and transactions that know their owner, so that
 * one whose answer was lost is simply sent again.
 */
export class EtcdBackend implements LockBackend {
  readonly name = 'etcd';
  readonly prefix: string;
  readonly #connect: () => readonly Endpoint[];
  readonly #keys: Keyspace;
  #opened: Open | undefined;

  /** @param connect finds the members, once the backend is opened */
  constructor(prefix: string, connect: () => readonly Endpoint[]) {
    this.prefix = prefix;
    this.#keys = new Keyspace(prefix);
    this.#connect = connect;
  }

  async open(host: BackendHost = ALONE): Promise<Capabilities> {
    const transport = new Transport(this.#connect(), host);
    const session: Session = new Session(host, transport, this.#keys, (lease) => {
      keeping.leaseGone(lease).catch((error: unknown) => host.report(error as Error));
    });
    const keeping = new Keeping(session);
    const leaving = new Leaving(session);
    const taking = new Taking(session, keeping, leaving);
    this.#opened = {
      session,
      taking,
      keeping,
      leaving,
      forcing: new Forcing(session),
      looking: new Looking(session),
    };
    return this.#check(session, host.commandTimeout * OPENING);
  }

  attempt(claim: Claim): Promise<Grant | Contended> {
    return this.#open.taking.attempt(claim);
  }

  awaitTurn(claim: Claim, _contended: Contended, signal: AbortSignal): Promise<void> {
    return this.#open.taking.awaitTurn(claim, signal);
  }

  renew(grants: readonly Grant[]): Promise<readonly Renewal[]> {
    return this.#open.keeping.renew(grants);
  }

  extend(grant: Grant, ttl: number): Promise<Renewal> {
    return this.#open.keeping.extend(grant, ttl);
  }

  verify(grant: Grant): Promise<boolean> {
    return this.#open.keeping.verify(grant);
  }

  release(claim: Claim, options: { readonly keepFor?: number } = {}): Promise<boolean> {
    return this.#open.leaving.release(claim, options.keepFor ?? 0);
  }

  letLapse({ owner }: Claim): void {
    const { session } = this.#open;
    const entry = session.entries.get(owner);
    if (entry !== undefined) session.letLapse(entry);
  }

  adopt(grant: Grant, newOwner: string): Promise<Grant | undefined> {
    return this.#open.keeping.adopt(grant, newOwner);
  }

  detach(grant: Grant): Promise<void> {
    return this.#open.keeping.detach(grant);
  }

  inspect(name: string): Promise<LockState> {
    return this.#open.looking.inspect(name);
  }

  list(prefix = ''): AsyncIterable<LockState> {
    return this.#open.looking.list(prefix);
  }

  forceRelease(name: string, expected?: bigint): Promise<boolean> {
    return this.#open.forcing.forceRelease(name, expected);
  }

  diagnose(): Promise<readonly Diagnosis[]> {
    return diagnose(this.#open.session.transport);
  }

  async close(): Promise<void> {
    if (this.#opened === undefined) return;
    const { session, leaving } = this.#opened;
    leaving.close();
    await session.close();
  }

  /** What this process keeps at the moment: nothing, once every claim has been given back. */
  get kept(): { readonly claims: number; readonly leases: number; readonly watches: number } {
    const { entries, leases, watches } = this.#open.session;
    return { claims: entries.size, leases: leases.size, watches: watches.size };
  }

  /** The server answers, speaks etcd, lets us read and write under the prefix, and says how short a lease may be. */
  async #check(session: Session, timeout: number): Promise<Capabilities> {
    try {
      const [shortest] = await Promise.all([
        session.leases.findShortest(timeout),
        session.transact('check the connection', probe(this.#keys.names()), { timeout }),
      ]);
      return {
        fairness: 'fifo',
        wake: 'push',
        expiry: 'server-ttl',
        consistency: 'linearizable',
        crossProcess: true,
        transferable: true,
        minHold: 'server',
        grace: Math.max(PLACE_TTL, shortest) + LAG,
        ttl: { min: shortest, max: MAX_DURATION, granularity: 1_000 },
      };
    } catch (error) {
      if (speaksSomethingElse(error)) {
        const message = `${session.transport.names} does not speak etcd's protocol: check the address`;
        throw new BackendError('BACKEND_REFUSED', message, { cause: error });
      }
      const tls = session.transport.endpoints[0]?.tls;
      const hint = tls === undefined ? '' : tlsHint(error, tls);
      if (hint === '' || !isHoldfastError(error)) throw error;
      const code = isHoldfastError(error, 'BACKEND_REFUSED') ? 'BACKEND_REFUSED' : 'BACKEND_UNAVAILABLE';
      throw new BackendError(code, `${error.message}${hint}`, { cause: error.cause });
    }
  }

  get #open(): Open {
    if (this.#opened === undefined) throw new Error('open() comes first');
    return this.#opened;
  }
}

/** Without core: nobody hears of a loss or a fault but by asking. */
const ALONE: BackendHost = {
  clock: systemClock,
  commandTimeout: 2_000,
  lost: () => undefined,
  report: () => undefined,
};
