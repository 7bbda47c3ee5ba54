import type { Timer } from './clock.js';
import type { Engine } from './engine.js';
import type { Hold } from './hold.js';

/** Renewals due within this share of their interval travel with the one that is due now. */
const COMPANY = 0.05;

/**
 * One scheduler for all holds of a `Locks`: renews those that are due, together, and raises the alarm for those whose
 * time is over. One timer, at the earliest of both.
 */
export class Watchdog {
  readonly #engine: Engine;
  /**
   * It stays when the hold that it was set for has gone: with none left it has nothing to do, but taking it back for each
   * hold that comes and goes would cost more than letting one timer lapse.
   */
  #alarm: { readonly at: number; readonly timer: Timer } | undefined;
  #stopped = false;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** The hold has just begun, or its times have changed: the alarm may have to come earlier. */
  reschedule(hold: Hold, now = this.#engine.clock.now()): void {
    if (hold.state === 'held') this.#alarmBy(nextLook(hold, now));
  }

  stop(): void {
    this.#stopped = true;
    this.#alarm?.timer.cancel();
    this.#alarm = undefined;
  }

  #alarmBy(at: number): void {
    if (this.#stopped || at === Infinity || (this.#alarm !== undefined && this.#alarm.at <= at)) return;
    this.#alarm?.timer.cancel();
    // Timers may fire a fraction of a millisecond early by the monotonic clock: round up rather than spin.
    const delay = Math.max(0, Math.ceil(at - this.#engine.clock.now()));
    this.#alarm = { at, timer: this.#engine.clock.setTimer(delay, () => this.#run()) };
  }

  #run(): void {
    this.#alarm = undefined;
    const now = this.#engine.clock.now();
    const due: Hold[] = [];
    for (const hold of this.#engine.holds.values()) {
      if (hold.endsAt <= now) hold.expire();
      else if (hold.renewAt <= now + hold.interval * COMPANY) due.push(hold);
    }
    if (due.length > 0) this.#renew(due, now);
    let next = Infinity;
    for (const hold of this.#engine.holds.values()) next = Math.min(next, nextLook(hold, now));
    this.#alarmBy(next);
  }

  /**
   * Sends one batch. It has no deadline of its own: a batch without an answer is followed by the next an interval
   * later, and an answer that comes late still counts if validity has not ended, from when it was sent.
   */
  #renew(due: readonly Hold[], sent: number): void {
    const batch = due.map((hold) => ({ hold, generation: hold.generation }));
    for (const hold of due) hold.renewalSent(sent);
    const answered = async (): Promise<void> => {
      const renewals = await this.#engine.backend.renew(due.map((hold) => hold.grant));
      for (const [index, { hold, generation }] of batch.entries()) {
        const renewal = renewals[index];
        if (renewal !== undefined) hold.renewalAnswered(renewal, sent, generation);
        this.reschedule(hold);
      }
    };
    answered().catch((error: unknown) => {
      const failure = this.#engine.asError('renew', due.length === 1 ? due[0]?.claim.name : undefined, error);
      this.#engine.report(failure, due.length === 1 ? due[0]?.claim : undefined);
      for (const hold of due) hold.renewalFailed(failure);
    });
  }
}

function nextLook(hold: Hold, now: number): number {
  return Math.min(hold.endsAt, hold.renewAt, now + hold.lookout);
}
