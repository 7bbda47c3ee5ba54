import type {
  CallResult,
  FencedWrite,
  HistoryEvent,
  Invoke,
  Levels,
  UnfencedWrite,
  Validity,
} from './event.js';

/** A span of time, ms on the monotonic clock. */
export interface Span {
  readonly from: number;
  readonly until: number;
}

/** One call of `acquire` or `tryAcquire`. */
export interface Acquisition {
  readonly process: string;
  readonly name: string;
  readonly queue: boolean;
  readonly invokedAt: number;
  /** `open`: nothing more was heard, so it may have been applied, as with `unknown`. */
  outcome: 'granted' | 'failed' | 'unknown' | 'open';
  /** When the outcome was written; Infinity while open. */
  endedAt: number;
  reason?: string;
  hold?: Hold;
}

/** One hold, from grant to release, loss or the end of its process. */
export interface Hold {
  readonly process: string;
  readonly name: string;
  readonly owner: string;
  readonly token: bigint;
  readonly acquisition: Acquisition;
  /** When the waiter knew that it had a place in the queue; absent if it never waited. */
  readonly queuedAt?: number;
  /** When its holder said that it is held: in order, none empty, cut where the hold ended. */
  claims: readonly Span[];
  /** What the handle promised last, whether or not its holder lived to see it. */
  promisedUntil: number;
  releasedAt?: number;
  lostAt?: number;
  lostReason?: string;
  /** When its process was killed or was last heard of, if that is what ended the hold. */
  diedAt?: number;
  /** A claim made after the loss had been signalled. */
  revivedAt?: number;
}

/** A write to a fenced register as its writer saw it. */
export interface ObservedWrite {
  readonly process: string;
  readonly name: string;
  readonly token: bigint;
  readonly invokedAt: number;
  outcome: 'accepted' | 'refused' | 'unknown' | 'failed';
  endedAt: number;
}

/** A fault, from injection to healing. */
export interface FaultSpan {
  readonly id: string;
  readonly fault: string;
  readonly touches: readonly string[] | undefined;
  readonly recoverWithin: number;
  readonly injectedAt: number;
  /** Infinity when it never healed. */
  healedAt: number;
}

/** An event of a register, in the order of its writes. */
export type RegisterWrite = { readonly at: number } & (FencedWrite | UnfencedWrite);

/** What happened, put together from the lines that tell it. */
export interface Story {
  readonly acquisitions: readonly Acquisition[];
  readonly holds: readonly Hold[];
  readonly registerWrites: readonly RegisterWrite[];
  readonly observedWrites: readonly ObservedWrite[];
  readonly faults: readonly FaultSpan[];
  readonly levels: readonly Levels[];
  /** When each process was killed. */
  readonly deaths: ReadonlyMap<string, number>;
  /** What makes the record itself unbelievable. */
  readonly problems: readonly { readonly at: number; readonly message: string }[];
  readonly from: number;
  readonly until: number;
}

/** Puts a merged history together. It judges nothing but the record itself. */
export function tellStory(events: readonly HistoryEvent[]): Story {
  const teller = new Teller();
  for (const event of events) teller.take(event);
  return teller.finish();
}

/** What was seen of a hold while reading. */
interface Sighting {
  readonly hold: Hold;
  readonly observations: Validity[];
}

class Teller {
  readonly #acquisitions: Acquisition[] = [];
  readonly #sightings: Sighting[] = [];
  readonly #byOwner = new Map<string, Sighting>();
  readonly #queuedAt = new Map<string, number>();
  readonly #open = new Map<string, { invoke: Invoke; acquisition?: Acquisition; write?: ObservedWrite }>();
  readonly #registerWrites: RegisterWrite[] = [];
  readonly #observedWrites: ObservedWrite[] = [];
  readonly #faults = new Map<string, FaultSpan>();
  readonly #levels: Levels[] = [];
  readonly #lastHeard = new Map<string, number>();
  readonly #ended = new Map<string, { at: number; how: 'killed' | 'ended' }>();
  readonly #problems: { at: number; message: string }[] = [];
  #from = Infinity;
  #until = -Infinity;

  take(event: HistoryEvent): void {
    const heard = this.#lastHeard.get(event.process);
    if (heard !== undefined && event.at < heard) this.#problem(event, 'goes back in time');
    this.#lastHeard.set(event.process, event.at);
    this.#from = Math.min(this.#from, event.at);
    this.#until = Math.max(this.#until, event.at);

    switch (event.type) {
      case 'invoke':
        this.#invoke(event);
        break;
      case 'ok':
      case 'fail':
      case 'unknown':
        this.#complete(event);
        break;
      case 'queued':
        if (!this.#queuedAt.has(event.owner)) this.#queuedAt.set(event.owner, event.at);
        break;
      case 'held':
        this.#held(event, event.owner, event);
        break;
      case 'lost':
        this.#lost(event);
        break;
      case 'fenced-write':
      case 'unfenced-write':
        this.#registerWrites.push(event);
        break;
      case 'fault':
        this.#fault(event);
        break;
      case 'process-end':
        if (!this.#ended.has(event.of)) this.#ended.set(event.of, { at: event.at, how: event.how });
        break;
      case 'levels':
        this.#levels.push(event);
        break;
      default:
        this.#problem(event, `is of a type that is not known: ${(event as { type: string }).type}`);
    }
  }

  finish(): Story {
    const deaths = new Map<string, number>();
    // An end that nobody brought about is seen late: the process claims nothing after its own last word.
    for (const [process, { at, how }] of this.#ended) {
      deaths.set(process, how === 'killed' ? at : (this.#lastHeard.get(process) ?? at));
    }
    for (const { hold, observations } of this.#sightings) settleClaims(hold, observations, deaths);
    return {
      acquisitions: this.#acquisitions,
      holds: this.#sightings.map(({ hold }) => hold),
      registerWrites: this.#registerWrites,
      observedWrites: this.#observedWrites,
      faults: [...this.#faults.values()],
      levels: this.#levels,
      deaths,
      problems: this.#problems,
      from: this.#from,
      until: this.#until,
    };
  }

  #invoke(event: HistoryEvent & Invoke): void {
    const key = `${event.process} ${event.op}`;
    if (this.#open.has(key)) this.#problem(event, `invokes operation ${event.op} twice`);
    const { process, name, at: invokedAt } = event;
    switch (event.action) {
      case 'acquire': {
        const acquisition: Acquisition = {
          process,
          name,
          queue: event.queue,
          invokedAt,
          outcome: 'open',
          endedAt: Infinity,
        };
        this.#acquisitions.push(acquisition);
        this.#open.set(key, { invoke: event, acquisition });
        return;
      }
      case 'write': {
        const token = BigInt(event.token);
        const write: ObservedWrite = {
          process,
          name,
          token,
          invokedAt,
          outcome: 'unknown',
          endedAt: Infinity,
        };
        this.#observedWrites.push(write);
        this.#open.set(key, { invoke: event, write });
        return;
      }
      case 'release': {
        const hold = this.#byOwner.get(event.owner)?.hold;
        if (hold === undefined) this.#problem(event, `releases ${event.owner}, which never held`);
        else hold.releasedAt ??= event.at;
        this.#open.set(key, { invoke: event });
        return;
      }
      case 'extend':
        if (!this.#byOwner.has(event.owner)) this.#problem(event, `extends ${event.owner}, which never held`);
        this.#open.set(key, { invoke: event });
    }
  }

  #complete(event: HistoryEvent & { type: 'ok' | 'fail' | 'unknown'; op: number }): void {
    const key = `${event.process} ${event.op}`;
    const open = this.#open.get(key);
    if (open === undefined) {
      this.#problem(event, `completes operation ${event.op}, which is not open`);
      return;
    }
    this.#open.delete(key);
    const { acquisition, write, invoke } = open;
    if (event.type === 'ok' && event.action !== invoke.action) {
      this.#problem(event, `completes ${invoke.action} ${event.op} as ${event.action}`);
      return;
    }
    if (acquisition !== undefined) {
      acquisition.endedAt = event.at;
      acquisition.outcome = event.type === 'ok' ? 'granted' : event.type === 'fail' ? 'failed' : 'unknown';
      if (event.type !== 'ok') acquisition.reason = event.reason;
    }
    if (write !== undefined && event.type === 'fail') write.outcome = 'failed';
    if (event.type === 'ok') this.#succeed(event, invoke, acquisition, write);
  }

  #succeed(
    event: HistoryEvent & CallResult,
    invoke: Invoke,
    acquisition: Acquisition | undefined,
    write: ObservedWrite | undefined,
  ): void {
    if (event.action === 'acquire' && acquisition !== undefined) {
      this.#grant(event, acquisition);
    } else if (event.action === 'extend' && invoke.action === 'extend') {
      this.#held(event, invoke.owner, event);
    } else if (event.action === 'write' && write !== undefined) {
      write.outcome = event.accepted ? 'accepted' : 'refused';
      write.endedAt = event.at;
    }
  }

  #grant(event: HistoryEvent & CallResult & { action: 'acquire' }, acquisition: Acquisition): void {
    if (this.#byOwner.has(event.owner)) {
      this.#problem(event, `is granted to owner ${event.owner} a second time`);
      return;
    }
    const queuedAt = this.#queuedAt.get(event.owner);
    const hold: Hold = {
      process: event.process,
      name: acquisition.name,
      owner: event.owner,
      token: BigInt(event.token),
      acquisition,
      ...(queuedAt === undefined ? {} : { queuedAt }),
      claims: [],
      promisedUntil: event.until,
    };
    acquisition.hold = hold;
    const sighting = { hold, observations: [event] };
    this.#byOwner.set(event.owner, sighting);
    this.#sightings.push(sighting);
  }

  #held(event: HistoryEvent, owner: string, validity: Validity): void {
    const sighting = this.#byOwner.get(owner);
    if (sighting === undefined) {
      this.#problem(event, `claims ${owner}, which never held`);
      return;
    }
    sighting.observations.push(validity);
    sighting.hold.promisedUntil = validity.until;
    const { hold } = sighting;
    if (hold.lostAt !== undefined && validity.until > validity.from && validity.from > hold.lostAt) {
      hold.revivedAt ??= validity.from;
    }
  }

  #lost(event: HistoryEvent & { owner: string; reason: string }): void {
    const hold = this.#byOwner.get(event.owner)?.hold;
    // A hold may be lost between its grant and the line that tells of it: then nothing was claimed.
    if (hold === undefined || hold.lostAt !== undefined) return;
    hold.lostAt = event.at;
    hold.lostReason = event.reason;
  }

  #fault(event: HistoryEvent & { type: 'fault' }): void {
    if (event.phase === 'heal') {
      const span = this.#faults.get(event.id);
      if (span === undefined) {
        this.#problem(event, `heals fault ${event.id}, which was not injected`);
        return;
      }
      span.healedAt = event.at;
      return;
    }
    if (this.#faults.has(event.id)) {
      this.#problem(event, `injects fault ${event.id} twice`);
      return;
    }
    this.#faults.set(event.id, {
      id: event.id,
      fault: event.fault,
      touches: event.touches,
      recoverWithin: event.recoverWithin,
      injectedAt: event.at,
      healedAt: Infinity,
    });
  }

  #problem(event: HistoryEvent, message: string): void {
    this.#problems.push({ at: event.at, message: `${event.process} ${message}` });
  }
}

/** Turns what a holder saw of its handle into the spans that it claimed, and finds what ended them. */
function settleClaims(
  hold: Hold,
  observations: readonly Validity[],
  deaths: ReadonlyMap<string, number>,
): void {
  const death = deaths.get(hold.process) ?? Infinity;
  // Each end cuts the claims made before it. A claim made after it is no less a claim: it stands, and may clash.
  const ends = [hold.releasedAt ?? Infinity, hold.lostAt ?? Infinity, death];
  const claims: Span[] = [];
  observations.forEach(({ from, until }, index) => {
    const next = observations[index + 1];
    // A handle that says less than before (its ttl was shortened) takes back the rest of what it said.
    let end = next !== undefined && next.until < until ? Math.max(next.from, next.until) : until;
    for (const cut of ends) if (from <= cut) end = Math.min(end, cut);
    if (end <= from) return;
    const last = claims.at(-1);
    if (last !== undefined && from <= last.until) {
      claims[claims.length - 1] = { from: last.from, until: Math.max(last.until, end) };
    } else {
      claims.push({ from, until: end });
    }
  });
  hold.claims = claims;
  if (death < hold.promisedUntil && hold.releasedAt === undefined && hold.lostAt === undefined) {
    hold.diedAt = death;
  }
}
