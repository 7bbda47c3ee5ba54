import { unlimitListeners } from '#platform';
import type { Claim, Grant, Renewal } from './backend.js';
import { sleep } from './clock.js';
import type { Engine } from './engine.js';
import { isTransient } from './engine.js';
import { LockLostError, type LostReason } from './errors.js';
import { effectiveTtl, type Request } from './options.js';
import { backoff } from './retry.js';
import { validUntil } from './validity.js';

/**
 * - `held`: ours for as long as validity lasts.
 * - `releasing`: asked to go. The server may free it at any moment, so it counts as held no more.
 * - `unreleased`: the outcome of the release is unknown; it may be tried again.
 * - `released`, `lost`: over. Loss is final: no answer that arrives later brings it back.
 * - `detached`: serialized; it goes on elsewhere.
 */
type State = 'held' | 'releasing' | 'unreleased' | 'released' | 'lost' | 'detached';

/** How a hold is to be kept: the part of a request that outlives the acquisition. */
export type HoldTerms = Pick<Request, 'renew' | 'maxHold' | 'minHold'>;

/** One hold of a lock: its validity, its loss, its renewal, its end. Several handles may share it by re-entry. */
export class Hold {
  readonly #engine: Engine;
  readonly renew: boolean;
  readonly #grantedAt: number;
  /** When its own `maxHold` ends it. */
  readonly #ownEnd: number;
  /** When each re-entrant call with a `maxHold` of its own that has not been left yet has to be over. */
  readonly #limits: number[] = [];
  /** The earliest of all these. */
  #maxEnd: number;
  #minHold: number;
  #grant: Grant;
  #state: State = 'held';
  #validUntil = 0;
  /** How long the server's answers are good for: paces the watchdog. */
  #validFor = 0;
  /** The end of a `renew: false` hold on a session backend, whose session would keep it for ever. */
  #leaseEnd = Infinity;
  #renewAt = Infinity;
  #failures = 0;
  #lastFailure: Error | undefined;
  /** Answers to renewals that were sent before an `extend` speak of a ttl that no longer counts. */
  #generation = 0;
  #error: LockLostError | undefined;
  #controller: AbortController | undefined;
  #releasing: Promise<boolean> | undefined;
  #handles = 0;

  /**
   * @param at when the answered request was sent, and what time it is
   */
  constructor(
    engine: Engine,
    grant: Grant,
    { sent, now }: { readonly sent: number; readonly now: number },
    terms: HoldTerms,
  ) {
    this.#engine = engine;
    this.#grant = grant;
    this.renew = terms.renew;
    this.#minHold = terms.minHold;
    this.#grantedAt = now;
    this.#ownEnd = this.#grantedAt + terms.maxHold;
    this.#maxEnd = this.#ownEnd;
    this.#confirm(grant.from ?? sent, grant.validFor ?? grant.ttl, this.#grantedAt);
    if (!terms.renew && this.#onSession) this.#leaseEnd = sent + grant.ttl;
  }

  /** Puts it under the watchdog, once validity has been checked. */
  start(now: number): void {
    this.#engine.holds.set(this.claim.owner, this);
    this.#engine.watchdog.reschedule(this, now);
  }

  get claim(): Claim {
    return this.#grant.claim;
  }

  get grant(): Grant {
    return this.#grant;
  }

  get ttl(): number {
    return this.#grant.ttl;
  }

  /** The token as callers see it. */
  get fencingToken(): bigint {
    return this.#grant.fencingToken + this.#engine.fenceOffset;
  }

  get state(): State {
    return this.#state;
  }

  /** Its holder gave it back, or on: nothing is left here to take again. One that was lost is not of these. */
  get isGivenUp(): boolean {
    return this.#state !== 'held' && this.#error === undefined;
  }

  get minHold(): number {
    return this.#minHold;
  }

  get lostError(): LockLostError | undefined {
    return this.#error;
  }

  /** When this hold ends unless something happens: validity, `maxHold`, or the ttl of a hold without renewal. */
  get endsAt(): number {
    return Math.min(this.#validUntil, this.#maxEnd, this.#leaseEnd);
  }

  /** When the watchdog should renew it. */
  get renewAt(): number {
    return this.#renewAt;
  }

  /** A third of the validity: leaves time for two more tries. */
  get interval(): number {
    return this.#validFor / 3;
  }

  /**
   * How long the watchdog may leave it alone, ms. A timer does not see that the machine was suspended: someone has to
   * look at the clock now and then.
   */
  get lookout(): number {
    return Math.max(1000, this.interval / 10);
  }

  get generation(): number {
    return this.#generation;
  }

  get maxHoldLeft(): number {
    return this.#maxEnd - this.#engine.clock.now();
  }

  /** Made only when somebody asks: most holds end without anybody listening. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      unlimitListeners(this.#controller.signal);
      if (this.#error !== undefined) this.#controller.abort(this.#error);
    }
    return this.#controller.signal;
  }

  remaining(): number {
    return this.isHeld() ? Math.max(0, this.endsAt - this.#engine.clock.now()) : 0;
  }

  /** The first to look after its time ran out makes the loss known: no timer may have had the chance. */
  isHeld(): boolean {
    return this.#state === 'held' && !this.#overdue();
  }

  /** One more handle shares it; the hold is over at `limit` unless that handle has been released by then. */
  share(limit: number): void {
    this.#handles++;
    if (limit === Infinity) return;
    this.#limits.push(limit);
    this.#limit();
  }

  /** One handle less; true when it was the last. */
  unshare(limit: number): boolean {
    if (limit !== Infinity) {
      // A limit that went by before anybody looked has ended the hold: it is not taken back with the handle.
      this.isHeld();
      this.#limits.splice(this.#limits.indexOf(limit), 1);
      this.#limit();
    }
    return --this.#handles <= 0;
  }

  #limit(): void {
    this.#maxEnd = Math.min(this.#ownEnd, ...this.#limits);
    this.#engine.watchdog.reschedule(this);
  }

  /** The tail that is left at the end is the longest that any of its acquisitions wished for. */
  leaveAtLeast(minHold: number): void {
    this.#minHold = Math.max(this.#minHold, minHold);
  }

  /** The watchdog sent a renewal: unless an answer changes that, the next is due an interval later. */
  renewalSent(now: number): void {
    this.#renewAt = now + this.interval;
  }

  /** The answer to a renewal. */
  renewalAnswered(renewal: Renewal, sent: number, generation: number): void {
    if (this.#state !== 'held') return;
    if (renewal.renewed === 'unknown') {
      this.renewalFailed(renewal.error);
      return;
    }
    if (!renewal.renewed) {
      this.lose(renewal.reason ?? 'superseded');
      return;
    }
    if (this.#overdue()) return;
    if (generation !== this.#generation) return;
    this.#grant = { ...this.#grant, ttl: renewal.ttl };
    this.#confirm(renewal.from ?? sent, renewal.validFor ?? renewal.ttl);
    // A hold without renewal on a session backend only learns that the session lives: its own end stays where it is.
    if (!this.renew) return;
    this.#engine.emit('renewed', { name: this.claim.name, owner: this.claim.owner, ttl: renewal.ttl });
  }

  /** An error is "unknown", never "lost" and never "renewed": it is tried again until validity ends. */
  renewalFailed(error: Error): void {
    if (this.#state !== 'held') return;
    this.#lastFailure = error;
    const pause = Math.min(backoff(this.#failures++), this.interval / 2);
    this.#renewAt = Math.min(this.#renewAt, this.#engine.clock.now() + pause);
    this.#engine.watchdog.reschedule(this);
  }

  /** The watchdog's alarm: its time is over. */
  expire(): void {
    if (this.#engine.clock.now() < this.endsAt) return;
    this.lose(this.endsAt === this.#maxEnd ? 'max-hold' : 'expired');
  }

  /**
   * Loss, once and for all: the signal aborts, and the entry at the server is given back by owner, in the background.
   */
  lose(reason: LostReason, cause?: Error): void {
    if (this.#state !== 'held') return;
    this.#end('lost');
    this.#error = new LockLostError(this.claim.name, reason, { cause: cause ?? this.#lastFailure });
    if (reason !== 'superseded' && reason !== 'forced') this.#engine.giveBack(this.claim, this.#tail());
    this.#announceLoss(this.#error);
  }

  #announceLoss(error: LockLostError): void {
    this.#engine.emit('lost', { name: this.claim.name, owner: this.claim.owner, error });
    this.#controller?.abort(error);
  }

  async verify(): Promise<boolean> {
    if (!this.isHeld()) return false;
    const { backend } = this.#engine;
    const grant = this.#grant;
    const ours = await this.#engine.persist('verify', this.claim.name, async () => {
      if (backend.verify !== undefined) return backend.verify(grant);
      const state = await backend.inspect(grant.claim.name);
      return state.owner === grant.claim.owner && state.fencingToken === grant.fencingToken;
    });
    if (!ours) this.lose('superseded');
    return ours && this.isHeld();
  }

  /** Sets the ttl, counted from the send. Asks again while the outcome is unknown and validity lasts. */
  async extend(ttl: number): Promise<void> {
    this.assertOurs();
    const { clock } = this.#engine;
    const wanted = effectiveTtl(ttl, this.#engine.capabilities.ttl);
    const deadline = clock.now() + this.#engine.commandTimeout;
    for (let failures = 0; ; failures++) {
      const sent = clock.now();
      try {
        const request = () => this.#engine.backend.extend(this.#grant, wanted);
        const patience = Math.max(1, Math.min(this.#engine.requestTimeout, this.remaining()));
        const renewal = await this.#engine.call('extend', this.claim.name, request, patience);
        if (renewal.renewed === 'unknown')
          throw this.#engine.asError('extend', this.claim.name, renewal.error);
        return this.#extended(renewal, sent);
      } catch (error) {
        this.assertOurs();
        const pause = backoff(failures);
        if (!isTransient(error) || clock.now() + pause >= deadline) throw error;
        await sleep(clock, pause, undefined, { keepAlive: true });
        this.assertOurs();
      }
    }
  }

  #extended(renewal: Exclude<Renewal, { renewed: 'unknown' }>, sent: number): void {
    if (!renewal.renewed) this.lose(renewal.reason ?? 'superseded');
    this.assertOurs();
    if (!renewal.renewed) return;
    this.#generation++;
    this.#grant = { ...this.#grant, ttl: renewal.ttl };
    if (!this.renew && this.#onSession) this.#leaseEnd = sent + renewal.ttl;
    this.#validUntil = 0;
    this.#confirm(renewal.from ?? sent, renewal.validFor ?? renewal.ttl);
    this.#engine.watchdog.reschedule(this);
    this.#engine.emit('renewed', { name: this.claim.name, owner: this.claim.owner, ttl: renewal.ttl });
  }

  /** Throws the reason why it is no longer ours, if it is not. */
  assertOurs(): void {
    if (this.#state === 'held' && !this.#overdue()) return;
    if (this.#error !== undefined) throw this.#error;
    const detail = this.#state === 'detached' ? 'it was serialized and goes on elsewhere' : 'it was released';
    throw new LockLostError(this.claim.name, 'superseded', { detail });
  }

  /** Gives it back; at the end of a failure it may be tried again. */
  release(): Promise<boolean> {
    if (this.#releasing !== undefined) return this.#releasing.then(() => false);
    const now = this.#engine.clock.now();
    if (this.#state === 'held' && this.#overdue(now)) return Promise.resolve(false);
    if (this.#state !== 'held' && this.#state !== 'unreleased') return Promise.resolve(false);
    this.#engine.leaving.set(this.claim.owner, this);
    this.#releasing = this.#release(now);
    return this.#releasing;
  }

  /** Resolves when no release is under way any more, however it ended. */
  async left(): Promise<void> {
    await this.#releasing?.catch(() => undefined);
  }

  async #release(now: number): Promise<boolean> {
    const { backend } = this.#engine;
    const valid = this.endsAt;
    let requests = this.#state === 'unreleased' ? 1 : 0;
    this.#end('releasing');
    const request = () => {
      requests++;
      return backend.release(this.claim, this.#tail());
    };
    let lost: LostReason | undefined;
    try {
      const gone = await this.#engine.persist('release', this.claim.name, request, now);
      if (!gone) lost = await this.#lostBefore(requests, valid);
      this.#hasLeft();
    } catch (error) {
      this.#hasLeft();
      this.#state = 'unreleased';
      // A later release() may ask again; if none comes, the entry still must not stay.
      this.#engine.giveBack(this.claim, this.#tail());
      throw error;
    }
    this.#state = 'released';
    if (lost === undefined) {
      if (this.#engine.events.wanted('released')) {
        const heldFor = this.#engine.clock.now() - this.#grantedAt;
        this.#engine.emit('released', { name: this.claim.name, owner: this.claim.owner, heldFor });
      }
      return true;
    }
    this.#error = new LockLostError(this.claim.name, lost);
    this.#announceLoss(this.#error);
    return false;
  }

  /**
   * Why the release found nothing of ours. Undefined where an earlier request of it, whose answer was lost, freed it: while
   * it was provably ours, nobody else can have, but by force.
   */
  async #lostBefore(requests: number, valid: number): Promise<LostReason | undefined> {
    if (this.#engine.clock.now() >= valid) return 'expired';
    if (await this.#wasForced()) return 'forced';
    return requests > 1 ? undefined : 'superseded';
  }

  /** As far as the backend remembers, and can be asked. */
  async #wasForced(): Promise<boolean> {
    const { backend } = this.#engine;
    if (backend.wasForced === undefined) return false;
    const { claim, fencingToken } = this.#grant;
    const ask = async () => backend.wasForced?.(claim.name, fencingToken);
    return (await this.#engine.call('release', claim.name, ask).catch(() => false)) === true;
  }

  #hasLeft(): void {
    this.#releasing = undefined;
    this.#engine.leaving.delete(this.claim.owner);
  }

  /** `close` gives everything back, and says so when it could not. */
  async releaseOnClose(): Promise<void> {
    try {
      await this.release();
    } catch (error) {
      this.#engine.report(error as Error, this.claim);
    }
  }

  /** Renewal stops here, the hold goes on: whoever adopts it has a full ttl from now, as far as the backend answers. */
  detach(): void {
    this.assertOurs();
    this.#end('detached');
    const { backend } = this.#engine;
    const grant = this.#grant;
    const hand = async (): Promise<void> => {
      await this.#engine.persist('renew', grant.claim.name, () => backend.renew([grant]));
      await this.#engine.persist('detach', grant.claim.name, async () => backend.detach?.(grant));
    };
    this.#engine.inBackground(hand());
  }

  #end(state: State): void {
    this.#state = state;
    this.#engine.holds.delete(this.claim.owner);
  }

  /** What `minHold` leaves behind: counted from when the grant was known here, which is after the server made it. */
  #tail(): { readonly keepFor?: number } | undefined {
    if (this.#minHold === 0) return undefined;
    const keepFor = this.#minHold - (this.#engine.clock.now() - this.#grantedAt);
    return keepFor > 0 ? { keepFor } : undefined;
  }

  /** True, and lost, when its time ran out before anybody noticed. */
  #overdue(now = this.#engine.clock.now()): boolean {
    if (now < this.endsAt) return false;
    this.expire();
    return true;
  }

  /** The server confirmed it for `validFor` ms counted from `from`. An older confirmation never shortens a newer one. */
  #confirm(from: number, validFor: number, now = this.#engine.clock.now()): void {
    this.#failures = 0;
    this.#lastFailure = undefined;
    this.#validFor = validFor;
    this.#validUntil = Math.max(this.#validUntil, validUntil(from, validFor));
    // A confirmation that speaks of the past leaves less than its full life: half of what is left is soon enough.
    const pause = Math.min(this.interval * (1 - Math.random() * 0.1), (this.#validUntil - now) / 2);
    this.#renewAt = this.renew || this.#onSession ? now + pause : Infinity;
  }

  get #onSession(): boolean {
    return this.#engine.capabilities.expiry === 'session';
  }
}
