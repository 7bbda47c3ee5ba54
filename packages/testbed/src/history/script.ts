import type { EventBody, HistoryEvent } from './event.js';

/** One hold as a test tells it. Times in ms. */
export interface ScriptedHold {
  readonly name?: string;
  readonly token: number | string;
  /** When it was asked for, and when it was answered. */
  readonly asked: number;
  readonly answered: number;
  /** The end of the validity that the handle promised. */
  readonly until: number;
  readonly queuedAt?: number;
  /** When release was called; it is answered 1 ms later unless `releaseOutcome` says otherwise. */
  readonly released?: number;
  readonly releaseOutcome?: 'ok' | 'unknown' | 'none';
}

/** Writes histories by hand, for tests: each call adds the lines of one thing that happened. */
export class Script {
  readonly #events: HistoryEvent[] = [];
  #op = 0;

  /** The lines in the order of time. */
  get events(): HistoryEvent[] {
    return [...this.#events].sort((a, b) => a.at - b.at);
  }

  add(at: number, process: string, body: EventBody): this {
    this.#events.push({ at, process, ...body });
    return this;
  }

  /** An acquisition that is granted, and what becomes of it. */
  hold(process: string, hold: ScriptedHold): this {
    const { name = 'a', asked, answered, until, queuedAt, released, releaseOutcome = 'ok' } = hold;
    const token = String(hold.token);
    const owner = `${process}/${token}`;
    const op = ++this.#op;
    this.add(asked, process, {
      type: 'invoke',
      op,
      action: 'acquire',
      name,
      queue: true,
      ttl: until - asked,
    });
    if (queuedAt !== undefined) this.add(queuedAt, process, { type: 'queued', name, owner });
    this.add(answered, process, { type: 'ok', op, action: 'acquire', owner, token, from: answered, until });
    if (released === undefined) return this;
    const release = ++this.#op;
    this.add(released, process, { type: 'invoke', op: release, action: 'release', name, owner });
    if (releaseOutcome === 'none') return this;
    return this.add(
      released + 1,
      process,
      releaseOutcome === 'ok'
        ? { type: 'ok', op: release, action: 'release', released: true }
        : { type: 'unknown', op: release, reason: 'no answer' },
    );
  }

  /** An acquisition that is not granted, as far as its caller knows. Without an end it stays open. */
  ungranted(
    process: string,
    call: {
      readonly name?: string;
      readonly asked: number;
      readonly ended?: number;
      readonly outcome?: 'fail' | 'unknown';
      readonly reason?: string;
    },
  ): this {
    const { name = 'a', asked, ended, outcome = 'fail', reason = 'contended' } = call;
    const op = ++this.#op;
    this.add(asked, process, { type: 'invoke', op, action: 'acquire', name, queue: true, ttl: 100 });
    return ended === undefined ? this : this.add(ended, process, { type: outcome, op, reason });
  }

  /** A write to a register that keeps its own record. */
  fencedWrite(at: number, writer: string, token: number, accepted: boolean, name = 'a'): this {
    return this.add(at, 'register', { type: 'fenced-write', name, writer, token: String(token), accepted });
  }

  /** A write to a register that keeps no record. Without an end its outcome stays unknown. */
  observedWrite(
    process: string,
    write: {
      readonly token: number;
      readonly asked: number;
      readonly ended?: number;
      readonly accepted?: boolean;
    },
  ): this {
    const op = ++this.#op;
    const { token, asked, ended, accepted = true } = write;
    this.add(asked, process, { type: 'invoke', op, action: 'write', name: 'a', token: String(token) });
    return ended === undefined
      ? this
      : this.add(ended, process, { type: 'ok', op, action: 'write', accepted });
  }

  /** A fault, from injection to healing. */
  fault(
    fault: string,
    from: number,
    until: number | undefined,
    recoverWithin: number,
    touches?: string[],
  ): this {
    const id = `${fault}@${from}`;
    this.add(from, 'testbed', {
      type: 'fault',
      phase: 'inject',
      id,
      fault,
      recoverWithin,
      ...(touches === undefined ? {} : { touches }),
    });
    return until === undefined ? this : this.add(until, 'testbed', { type: 'fault', phase: 'heal', id });
  }

  levels(at: number, phase: 'before' | 'after', scope: string, counts: Record<string, number>): this {
    return this.add(at, 'testbed', { type: 'levels', phase, scope, counts });
  }
}
