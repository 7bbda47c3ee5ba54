import { BackendError, type Claim, type Contended, type Grant, sleep, type Timer } from '@holdfast/core';
import type { IKeyValue, ITxnRequest, ITxnResponse } from 'etcd3';
import type { Entry } from './entry.js';
import { failureOf } from './errors.js';
import type { Keeping } from './keeping.js';
import type { Lease } from './leases.js';
import type { Leaving } from './leaving.js';
import type { Sighting } from './lookout.js';
import type { Session } from './session.js';
import { decodeClaim, type StoredClaim } from './stored.js';
import * as transactions from './transactions.js';

/** ttl of the lease that keeps a place in the queue, ms. */
export const PLACE_TTL = 4_000;
/** A waiter looks at its two keys this often even if no watch wakes it, ms: see `Lookout.pauseBefore`. */
const POLL = 4_000;
/**
 * A waiter that waits for longer watches its own key as well, ms. One that is served sooner would make that watch, and
 * take it back, for nothing: its turn is checked by the transaction that takes it.
 */
const PASSING = 1_000;
/** A lease that was kept alive within this share of its ttl, or within a second, is fresh enough for a grant. */
const FRESH = 0.1;

/** What became of a try. */
type Taken = 'granted' | Contended;

/** How a wait for the turn ended; `freed` where the one before us held the lock. */
type Woken = 'freed' | 'deleted' | 'broken' | 'aborted';

/** From a claim to a grant: entering, queueing, waiting for the turn. */
export class Taking {
  readonly #session: Session;
  readonly #keeping: Keeping;
  readonly #leaving: Leaving;

  constructor(session: Session, keeping: Keeping, leaving: Leaving) {
    this.#session = session;
    this.#keeping = keeping;
    this.#leaving = leaving;
  }

  attempt(claim: Claim): Promise<Grant | Contended> {
    const entry = this.#session.entries.get(claim.owner) ?? this.#session.enrol(claim);
    return entry.inTurn(async () => {
      if (!this.#session.knows(entry)) throw over(claim);
      entry.claim = claim;
      try {
        return await this.#attempt(entry);
      } catch (error) {
        if (failureOf(error) !== 'lease-gone') throw error;
        await this.#replaceLeases(entry);
        return await this.#attempt(entry);
      }
    });
  }

  /** Resolves when the key before ours or our own is deleted, or was found missing. */
  async awaitTurn(claim: Claim, signal: AbortSignal): Promise<void> {
    const { clock, entries, lookout } = this.#session;
    const entry = entries.get(claim.owner);
    if (entry?.state.kind !== 'waiting') return;
    const { predecessor, token } = entry.state;
    const sightings = [predecessor, { key: entry.key, token }] as const;
    let { revision } = entry.state;
    for (let breaks = 0; !signal.aborted; ) {
      const woken = await this.#nextEvent(entry, sightings, revision, signal);
      if (woken === 'freed' && entry.state.kind === 'waiting') entry.state = { ...entry.state, heir: true };
      if (woken !== 'broken') return;
      await sleep(clock, pauseAfter(breaks++), signal);
      if (signal.aborted) return;
      const found = await lookout.look(sightings);
      if (!found.unchanged) return;
      revision = found.revision;
      await entry.inTurn(async () => {
        if (this.#session.knows(entry)) await this.#leaveRetired(entry);
      });
    }
  }

  async #attempt(entry: Entry): Promise<Grant | Contended> {
    const lease = await this.#leaseFor(entry);
    // Beside the transaction, not before it: a grant should come with nearly its whole ttl, and without a detour.
    const fresh = this.#session.leases
      .atMost(lease, Math.min(1_000, lease.ttl * FRESH))
      .catch(() => undefined);
    const taken = await this.#take(entry, lease);
    if (taken !== 'granted') return taken;
    await fresh;
    return this.#keeping.grantOf(entry);
  }

  #take(entry: Entry, lease: Lease): Promise<Taken> {
    switch (entry.state.kind) {
      case 'held':
        return this.#takeAgain(entry, lease);
      case 'waiting':
        return this.#turn(
          entry,
          entry.state.token,
          lease,
          entry.state.heir ? entry.state.predecessor : undefined,
        );
      case 'unknown':
        return this.#enter(entry, lease);
    }
  }

  async #enter(entry: Entry, lease: Lease): Promise<Taken> {
    // While nobody of this process waits there is no lease for places, and most locks are free: then the first try is
    // the smallest one, and only if it is refused another joins the queue, or finds that an earlier one arrived.
    const { queue } = entry.claim;
    if (queue && this.#placeIfAny(entry) !== undefined) return this.#join(entry, lease);
    entry.since = this.#session.clock.wall();
    const taking = transactions.take(entry.range, this.#held(entry, lease), { curious: !queue });
    const entered = transactions.taken(
      await this.#sendStraying(entry, [lease], taking, { scope: entry.claim.name }),
    );
    const refused = entered.kind === 'refused';
    if (refused && queue) return this.#join(entry, lease);
    if (refused && entered.oldest === undefined) return this.#tryPastForeign(entry, lease);
    return this.#entered(entry, lease, entered);
  }

  async #join(entry: Entry, lease: Lease): Promise<Taken> {
    const place = await this.#placeOf(entry);
    entry.since = this.#session.clock.wall();
    const { name } = entry.claim;
    const waiting = { key: entry.key, value: entry.value('waiting', place), lease: place.id };
    const last = this.#session.lastQueued.get(name);
    this.#session.lastQueued.set(name, entry);
    // Another claim of ours waits, or is about to: the lock is not free.
    if (last !== undefined && last !== entry && last.state.kind !== 'held') {
      const answer = await this.#sendStraying(entry, [place], transactions.queueUp(entry.range, waiting));
      return this.#entered(entry, lease, transactions.queuedUp(answer, transactions.revisionOf(answer)));
    }
    const joining = transactions.join(entry.range, this.#held(entry, lease), waiting);
    const answer = await this.#sendStraying(entry, [lease, place], joining);
    return this.#entered(entry, lease, transactions.joined(answer));
  }

  #entered(entry: Entry, lease: Lease, entered: transactions.Entered): Promise<Taken> | Taken {
    switch (entered.kind) {
      case 'taken':
        return this.#granted(entry, lease, entered.revision, entered.revision);
      case 'present':
        return this.#present(entry, entered.own, lease);
      case 'refused':
        entry.keyGone = true;
        this.#session.forget(entry);
        return contended(entered.oldest);
      case 'queued':
        entry.mod = entered.revision;
        return this.#queued(entry, lease, entered);
    }
  }

  #held(entry: Entry, lease: Lease): transactions.Put {
    return { key: entry.key, value: entry.value('held', lease), lease: lease.id };
  }

  /**
   * Sends what makes the key. Until an answer says that no try went astray, the key may be made at any later time.
   *
   * @param options.scope as in `Outbox.send`
   */
  async #sendStraying(
    entry: Entry,
    leases: readonly Lease[],
    transaction: ITxnRequest,
    options?: { readonly scope?: string },
  ): Promise<ITxnResponse> {
    const suspects = leases.filter((lease) => !entry.strays.has(lease));
    for (const lease of suspects) entry.strays.add(lease);
    const { value, strays } = await this.#session.transact('acquire a lock', transaction, options);
    if (!strays) for (const lease of suspects) entry.strays.delete(lease);
    return value;
  }

  #queued(
    entry: Entry,
    lease: Lease,
    { oldest, predecessor, foreign, ahead, revision }: transactions.Queued,
  ): Promise<Taken> | Contended {
    if (foreign) return this.#passForeign(entry, revision, lease);
    if (predecessor === undefined) return this.#turn(entry, revision, lease);
    entry.state = { kind: 'waiting', token: revision, predecessor, revision };
    return contended(oldest ?? predecessor, oldest?.state === 'waiting' ? ahead + 1 : ahead);
  }

  /** An earlier request of ours arrived, though its answer did not. */
  async #present(entry: Entry, own: StoredClaim | undefined, lease: Lease): Promise<Taken> {
    if (own?.owner !== entry.claim.owner) {
      this.#session.forget(entry);
      throw new Error(`the key of the owner ${entry.claim.owner} is not its claim`);
    }
    entry.mod = own.mod;
    if (own.state !== 'held') return this.#turn(entry, own.token, lease);
    entry.state = { kind: 'held', token: own.token };
    entry.since = own.since;
    return this.#takeAgain(entry, lease);
  }

  /** Ours already, as far as we know: make sure of it, on this lease, with its whole time again. */
  async #takeAgain(entry: Entry, lease: Lease): Promise<Taken> {
    await this.#session.leases.refresh(lease);
    if (await this.#keeping.move(entry, lease)) return 'granted';
    entry.state = { kind: 'unknown' };
    return this.#enter(entry, lease);
  }

  /** @param freed the holder before us, whose key was seen deleted */
  async #turn(entry: Entry, token: bigint, lease: Lease, freed?: StoredClaim): Promise<Taken> {
    entry.since = this.#session.clock.wall();
    const held = this.#held(entry, lease);
    const { value } = await this.#session.transact(
      'acquire a lock',
      freed === undefined
        ? transactions.turn(entry.range, token, held)
        : transactions.succeed(entry.range, token, freed, held),
    );
    const turned = transactions.turned(value);
    if (turned.kind === 'taken') return this.#granted(entry, lease, token, turned.revision);
    const { own, oldest, older, foreign, revision } = turned;
    if (own?.token !== token) return this.#rejoin(entry, lease);
    if (own.state === 'held') return this.#present(entry, own, lease);
    entry.mod = own.mod;
    const [predecessor] = older;
    if (foreign || predecessor === undefined || oldest === undefined)
      return this.#passForeign(entry, token, lease);
    entry.state = { kind: 'waiting', token, predecessor, revision };
    return contended(oldest, older.length < transactions.SIGHT ? positionAfter(older) : undefined);
  }

  /** The place was lost while we were paused or cut off: join again, at the end. */
  #rejoin(entry: Entry, lease: Lease): Promise<Taken> {
    entry.state = { kind: 'unknown' };
    return this.#enter(entry, lease);
  }

  /**
   * There are foreign keys among the claims: read everything and judge by the claims alone. Nothing can come to stand
   * before us afterwards, since every later key has a later create revision.
   */
  async #passForeign(entry: Entry, token: bigint, lease: Lease): Promise<Taken> {
    const { value } = await this.#session.transact('read a lock', transactions.queue(entry.range));
    const [claims = []] = transactions.claimsIn(value);
    const older = claims.filter((claim) => claim.token < token).reverse();
    const [predecessor] = older;
    if (predecessor !== undefined) {
      const revision = transactions.revisionOf(value);
      entry.state = { kind: 'waiting', token, predecessor, revision };
      return contended(claims[0], positionAfter(older));
    }
    const confirming = transactions.confirm(token, this.#held(entry, lease));
    const answer = await this.#session.transact('acquire a lock', confirming);
    const { done, own, revision } = transactions.outcome(answer.value);
    if (done) return this.#granted(entry, lease, token, revision);
    return own === undefined ? this.#rejoin(entry, lease) : this.#present(entry, own, lease);
  }

  /** Foreign keys with a lease among the claims: only a place in the queue tells whether there is anybody before us. */
  async #tryPastForeign(entry: Entry, lease: Lease): Promise<Taken> {
    const taken = await this.#join(entry, lease);
    if (taken === 'granted') return taken;
    await this.#leaving.remove(entry);
    this.#session.forget(entry);
    return taken;
  }

  #granted(entry: Entry, lease: Lease, token: bigint, revision: bigint): 'granted' {
    entry.state = { kind: 'held', token };
    entry.mod = revision;
    this.#session.bind(entry, lease);
    return 'granted';
  }

  /** The lease that a grant will live on. A hold that is not renewed has its own: others would keep it alive. */
  async #leaseFor(entry: Entry): Promise<Lease> {
    const { lease, claim } = entry;
    const held = entry.state.kind === 'held';
    const enough = lease !== undefined && lease.ttl >= this.#session.leases.effective(claim.ttl);
    if (lease !== undefined && (held ? enough : !lease.retired)) return lease;
    const next = await this.#keeping.newLease(entry, claim.ttl);
    if (held) return next;
    if (lease !== undefined) this.#session.drop(entry, lease);
    entry.lease = next;
    return next;
  }

  #placeIfAny(entry: Entry): Lease | undefined {
    if (entry.place !== undefined && !entry.place.retired) return entry.place;
    const place = this.#session.leases.sharedIfAny(PLACE_TTL, entry);
    if (place !== undefined) entry.leases.add(place);
    entry.place = place;
    return place;
  }

  async #placeOf(entry: Entry): Promise<Lease> {
    const present = this.#placeIfAny(entry);
    if (present !== undefined) return present;
    const place = await this.#session.leases.shared(PLACE_TTL, entry);
    entry.leases.add(place);
    entry.place = place;
    return place;
  }

  /** A lease that is about to be revoked waits for its last user: leave it, with the place in the queue if that is on it. */
  async #leaveRetired(entry: Entry): Promise<void> {
    const { lease, place } = entry;
    if (entry.state.kind !== 'waiting') return;
    if (lease?.retired === true) {
      entry.lease = undefined;
      this.#session.drop(entry, lease);
    }
    if (place?.retired === true) await this.#movePlace(entry, place);
  }

  async #movePlace(entry: Entry, place: Lease): Promise<void> {
    const next = await this.#placeOf(entry);
    const put = { key: entry.key, value: entry.value('waiting', next), lease: next.id };
    const { value } = await this.#session.transact('keep a place', transactions.replace(entry, put));
    const { done, own, revision } = transactions.outcome(value);
    if (done) this.#session.drop(entry, place);
    // Not so: another write of ours was applied, or the place is lost; the next attempt finds out.
    entry.mod = done ? revision : (own?.mod ?? entry.mod);
  }

  /** The server does not know one of the claim's leases any more: those that are gone are replaced. */
  async #replaceLeases(entry: Entry): Promise<void> {
    const { leases } = this.#session;
    const mine = [...entry.leases];
    await Promise.all(mine.map((lease) => leases.refresh(lease).catch(() => undefined)));
    const gone = mine.filter((lease) => lease.retired);
    for (const lease of gone.length > 0 ? gone : mine) {
      leases.retire(lease);
      this.#session.drop(entry, lease);
      if (entry.lease === lease) entry.lease = undefined;
      if (entry.place === lease) entry.place = undefined;
    }
    if (entry.state.kind === 'held') entry.state = { kind: 'unknown' };
  }

  /** One of the keys is deleted or found missing, the watch breaks, or the caller has gone. */
  #nextEvent(
    entry: Entry,
    sightings: readonly [predecessor: Sighting, own: Sighting],
    revision: bigint,
    signal: AbortSignal,
  ): Promise<Woken> {
    const { watches, clock, lookout } = this.#session;
    return new Promise((resolve) => {
      if (signal.aborted) return resolve('aborted');
      let finished = false;
      const finish = (woken: Woken): void => {
        finished = true;
        poll.cancel();
        lasting.cancel();
        signal.removeEventListener('abort', abort);
        for (const unwatch of unwatches) unwatch();
        resolve(woken);
      };
      const abort = (): void => finish('aborted');
      signal.addEventListener('abort', abort, { once: true });
      const look = async (): Promise<void> => {
        const found = await lookout.look(sightings);
        if (finished) return;
        if (!found.unchanged) return finish('deleted');
        await entry.inTurn(() => this.#leaveRetired(entry));
        if (!finished) poll = lookLater();
      };
      const lookLater = (): Timer =>
        clock.setTimer(lookout.pauseBefore(POLL), () => {
          look().catch(() => !finished && finish('broken'));
        });
      let poll = lookLater();
      const [predecessor, own] = sightings;
      const unwatches = [
        watches.watch(predecessor, revision, (outcome, before) => finish(heldBy(before) ? 'freed' : outcome)),
      ];
      const lasting = clock.setTimer(PASSING, () => unwatches.push(watches.watch(own, revision, finish)));
    });
  }
}

/** It was the holder's key, or a tail: whoever is right behind it comes next. */
function heldBy(before: IKeyValue | undefined): boolean {
  const claim = before === undefined ? undefined : decodeClaim(before);
  return claim !== undefined && claim.state !== 'waiting';
}

function contended(oldest: StoredClaim | undefined, position?: number): Contended {
  return {
    ...(oldest === undefined || oldest.state !== 'held'
      ? {}
      : { holder: { owner: oldest.owner, since: new Date(oldest.since) } }),
    ...(position === undefined ? {} : { position }),
  };
}

/** 1 is next. The oldest of those before us holds the lock, unless it is about to take it. */
function positionAfter(older: readonly StoredClaim[]): number {
  return older.length + (older[older.length - 1]?.state === 'waiting' ? 1 : 0);
}

function pauseAfter(breaks: number): number {
  return Math.min(2_000, 20 * 2 ** breaks) * (0.5 + Math.random() / 2);
}

/**
 * An earlier request of the claim was answered while this one waited for its turn, and it was over then: its leases were
 * given back, and its key may be another's.
 */
function over({ name }: Claim): BackendError {
  return new BackendError(
    'BACKEND_UNAVAILABLE',
    `etcd: an earlier request for lock ${JSON.stringify(name)} has been answered meanwhile; ask again`,
    { lockName: name },
  );
}
