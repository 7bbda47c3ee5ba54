import { followAbort } from './abort.js';
import type { Claim, Contended, Grant } from './backend.js';
import { sleep, type Timer } from './clock.js';
import { type Engine, isTransient } from './engine.js';
import { BackendError, LocksClosedError, LockTimeoutError } from './errors.js';
import { Handle } from './handle.js';
import { Hold } from './hold.js';
import { effectiveTtl, type Request } from './options.js';
import { newOwner } from './owner.js';
import { backoff } from './retry.js';

/** ms: a turn that came sooner was not waited for. */
const HASTY = 1;

/** ms: at most so long is the pause before asking again, once a second turn in a row was not waited for. */
const HASTY_PAUSE = 50;

/** Why a wait is aborted. Given, since Node is slow to make one. */
const STOPPED = new Error('the acquisition has ended');

/** How an acquisition ends when the lock is refused: a wait that ran out, or "somebody else has it". */
export type Refusal = 'wait' | 'try';

/**
 * One acquisition, from the first attempt to a hold or to nothing left behind.
 *
 * The loop asks the backend, sleeps until its turn, asks again. Beside it stands whatever may end it from outside: the
 * deadline, the caller's signal, `close`. Then the caller is answered at once, even with a request unanswered, and the
 * loop, which alone knows what was sent, cleans up behind it.
 */
export class Acquisition {
  readonly #engine: Engine;
  readonly #name: string;
  readonly #request: Request;
  readonly #refusal: Refusal;
  readonly #started: number;
  readonly #ttl: number;
  #claim: Claim;
  /** Something was sent for the claim that may have left a grant or a place in the queue. */
  #mayLeaveTraces = false;
  /** A request of the claim went unanswered: it may still arrive, whatever a later one was told. */
  #unknown = false;
  #lastContended: Contended | undefined;
  #lastError: Error | undefined;
  #lastAnswerAt: number;
  #announced = false;
  /** Turns in a row that came at once. */
  #hasty = 0;
  #stopped = false;
  #stopWaiting: AbortController | undefined;
  /** What listens to it has not returned. */
  #waiting = false;
  #deadline: Timer | undefined;
  #unfollow: (() => void) | undefined;

  constructor(engine: Engine, name: string, request: Request, refusal: Refusal) {
    this.#engine = engine;
    this.#name = name;
    this.#request = request;
    this.#refusal = refusal;
    this.#started = engine.clock.now();
    this.#lastAnswerAt = this.#started;
    this.#ttl = effectiveTtl(request.ttl, engine.capabilities.ttl);
    this.#claim = this.#freshClaim();
  }

  /** Null only for a try that was refused. */
  run(): Promise<Handle | null> {
    return new Promise((resolve, reject) => {
      const loop = this.#loop();
      this.#watchForTheEnd((reason) => {
        if (!this.#stop()) return;
        reject(reason);
        // What the claim may have left is cleaned up by the loop, and `close` waits for that.
        this.#engine.inBackground(loop.then(() => undefined));
      });
      loop.then(
        (hold) => {
          if (this.#stop()) resolve(hold === null ? null : new Handle(this.#engine, hold));
          // Whoever stopped it in the very tick of the grant has an answer already: nobody will give this hold back.
          else if (hold !== null) this.#engine.inBackground(hold.release().then(() => undefined));
        },
        (error: unknown) => {
          if (this.#stop()) reject(error);
        },
      );
    });
  }

  /** The deadline, the caller's signal and `close`, each with the error that the caller gets. */
  #watchForTheEnd(end: (reason: unknown) => void): void {
    const { signal } = this.#request;
    const limit = this.#limit;
    if (limit !== Infinity) this.#deadline = this.#engine.clock.setTimer(limit, () => end(this.#timedOut()));
    const { owner } = this.#claim;
    const unfollowClose = this.#engine.whenClosing(owner, () => end(new LocksClosedError(this.#name)));
    this.#unfollow = unfollowClose;
    if (signal === undefined) return;
    const unfollowSignal = followAbort(signal, () => end(signal.reason));
    this.#unfollow = () => {
      unfollowClose();
      unfollowSignal();
    };
  }

  /**
   * From here on the caller has an answer: nothing watches any more, and the loop finds its way out.
   *
   * @returns false when the caller has had an answer before
   */
  #stop(): boolean {
    if (this.#stopped) return false;
    this.#stopped = true;
    this.#deadline?.cancel();
    this.#unfollow?.();
    if (this.#waiting) this.#stopWaiting?.abort(STOPPED);
    return true;
  }

  /** One attempt may be sent again, to learn its outcome or past a transient error, within the command timeout. */
  get #limit(): number {
    return this.#request.wait === 0 ? this.#engine.commandTimeout : this.#request.wait;
  }

  async #loop(): Promise<Hold | null> {
    let sent = this.#started;
    for (let failures = 0; ; sent = this.#engine.clock.now()) {
      try {
        const answer = await this.#attempt(sent);
        const answered = this.#engine.clock.now();
        failures = 0;
        this.#lastAnswerAt = answered;
        this.#lastError = undefined;
        const hold =
          'fencingToken' in answer ? this.#granted(answer, sent, answered) : await this.#contended(answer);
        if (hold !== undefined) return hold;
      } catch (error) {
        if (this.#stopped) return this.#giveUp();
        this.#assertWorthRetrying(error);
        this.#lastError = error as Error;
        this.#unknown = true;
        await this.#pause(backoff(failures++));
      }
      if (this.#stopped) return this.#giveUp();
    }
  }

  #attempt(sent: number): Promise<Grant | Contended> {
    this.#mayLeaveTraces = true;
    // Never longer than the patience with a silent backend: an infinite wait is bounded too.
    const patience = this.#lastAnswerAt + this.#engine.unavailableAfter - sent;
    const timeout = Math.max(1, Math.min(this.#engine.requestTimeout, patience));
    const request = () => this.#engine.backend.attempt(this.#claim);
    return this.#engine.call('acquire', this.#name, request, timeout, sent);
  }

  /** A hold, unless it comes too late for the caller or for its own validity. */
  #granted(grant: Grant, sent: number, now: number): Hold | undefined {
    if (this.#stopped) return undefined;
    const hold = new Hold(this.#engine, grant, { sent, now }, this.#request);
    if (hold.endsAt <= now) {
      // Its time went by on the way. The claim is given back, and the next attempt must be another claim.
      this.#giveUp();
      this.#claim = this.#freshClaim();
      this.#unknown = false;
      const about = `the answer for lock ${JSON.stringify(this.#name)}`;
      const what =
        now - sent < grant.ttl
          ? `${about} speaks of a grant that is over; the backend was away for too long`
          : `${about} took longer than its ttl of ${grant.ttl} ms; use a longer ttl`;
      throw new BackendError('BACKEND_UNAVAILABLE', what, { lockName: this.#name });
    }
    hold.start(now);
    const { owner } = grant.claim;
    if (this.#engine.events.wanted('acquired')) {
      const waited = this.#engine.clock.now() - this.#started;
      this.#engine.emit('acquired', { name: this.#name, owner, fencingToken: hold.fencingToken, waited });
    }
    return hold;
  }

  /** Waits for the turn; null where waiting is not wanted. */
  async #contended(contended: Contended): Promise<null | undefined> {
    this.#lastContended = contended;
    if (this.#request.wait === 0) {
      if (this.#unknown) this.#giveUp();
      if (this.#refusal === 'try') return null;
      throw this.#lockTimeout();
    }
    this.#announce(contended);
    if (this.#stopped) return undefined;
    const asked = this.#engine.clock.now();
    await this.#interruptibly((signal) =>
      this.#engine.keepAlive(this.#engine.backend.awaitTurn(this.#claim, contended, signal)),
    );
    const isHasty = this.#engine.clock.now() - asked < HASTY;
    this.#hasty = isHasty ? this.#hasty + 1 : 0;
    // A wake-up may well have come before it was waited for. Over and over, from a backend that answers in a
    // microtask, it would leave the process no time for anything else.
    if (this.#hasty > 1) await this.#pause(backoff(0, HASTY_PAUSE));
    return undefined;
  }

  #announce({ position, holder }: Contended): void {
    if (this.#announced) return;
    this.#announced = true;
    this.#engine.emit('waiting', {
      name: this.#name,
      owner: this.#claim.owner,
      ...(position === undefined ? {} : { position }),
      ...(holder === undefined ? {} : { holder: holder.owner }),
    });
  }

  /** The caller has gone: whatever the claim may have at the server is given back in the background. */
  #giveUp(): null {
    if (this.#mayLeaveTraces) this.#engine.giveBack(this.#claim);
    this.#mayLeaveTraces = false;
    return null;
  }

  #assertWorthRetrying(error: unknown): void {
    if (error instanceof LockTimeoutError) throw error;
    const silent = this.#engine.clock.now() - this.#lastAnswerAt;
    if (isTransient(error) && silent < this.#engine.unavailableAfter) return;
    this.#giveUp();
    throw error;
  }

  async #pause(ms: number): Promise<void> {
    const { clock, unavailableAfter } = this.#engine;
    const patience = this.#lastAnswerAt + unavailableAfter - clock.now();
    await this.#interruptibly((signal) =>
      sleep(clock, Math.min(ms, Math.max(patience, 0)), signal, { keepAlive: true }),
    );
  }

  /** Waits until the acquisition ends, at the latest. */
  async #interruptibly(wait: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (this.#stopped) return;
    this.#stopWaiting ??= new AbortController();
    this.#waiting = true;
    try {
      await wait(this.#stopWaiting.signal);
    } finally {
      this.#waiting = false;
    }
  }

  /** The deadline: contention is one thing, a backend that does not answer is another. */
  #timedOut(): Error {
    if (this.#lastContended !== undefined && this.#lastError === undefined) return this.#lockTimeout();
    const said = this.#lastError === undefined ? 'it did not answer' : this.#lastError.message;
    return new BackendError(
      'BACKEND_UNAVAILABLE',
      `lock ${JSON.stringify(this.#name)} could not be acquired within ${Math.round(this.#limit)} ms: ${said}`,
      { lockName: this.#name, cause: this.#lastError },
    );
  }

  #lockTimeout(): LockTimeoutError {
    const waited = this.#engine.clock.now() - this.#started;
    return new LockTimeoutError(this.#name, waited, this.#lastContended?.holder);
  }

  #freshClaim(): Claim {
    const { renew, wait, metadata } = this.#request;
    const claim = { name: this.#name, owner: newOwner(), ttl: this.#ttl, queue: wait > 0, renew };
    return metadata === undefined ? claim : { ...claim, metadata };
  }
}
