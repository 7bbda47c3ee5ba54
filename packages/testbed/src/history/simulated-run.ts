import { Random } from '../random/random.js';
import type { EventBody, HistoryEvent } from './event.js';

/** How a simulated run goes. */
export interface SimulationOptions {
  readonly seed: number;
  /** Sessions that each lane goes through: acquire, work, release. */
  readonly sessions: number;
  /** Sequential callers, each a process of its own. */
  readonly lanes: number;
  readonly names: number;
  /** The share of sessions in which something goes wrong, 0 to 1. Default 0.2. */
  readonly trouble?: number;
  /** Default true: faults are written too, each with its injection and healing. */
  readonly faults?: boolean;
}

const TTL = 300;
const RECOVER_WITHIN = 20 * TTL;

/**
 * The history of a lock that keeps every promise, played on a clock of its own: requests and answers take time,
 * holders die, stop and lose, answers are lost. Made to test the checker, so it shares nothing with it.
 */
export function simulateRun(options: SimulationOptions): HistoryEvent[] {
  return new Simulation(options).run();
}

interface Waiter {
  readonly owner: string;
  readonly granted: () => void;
}

interface SimulatedLock {
  holder: { owner: string; expires: number } | undefined;
  readonly queue: Waiter[];
  token: bigint;
  newestWritten: bigint;
  version: number;
}

class Simulation {
  readonly #options: SimulationOptions;
  readonly #random: Random;
  readonly #agenda = new Agenda();
  readonly #locks: readonly SimulatedLock[];
  readonly #events: HistoryEvent[] = [];
  #serial = 0;

  constructor(options: SimulationOptions) {
    this.#options = options;
    this.#random = new Random(options.seed);
    this.#locks = Array.from({ length: options.names }, () => ({
      holder: undefined,
      queue: [],
      token: 1_700_000_000_000_000n,
      newestWritten: 0n,
      version: 0,
    }));
  }

  run(): HistoryEvent[] {
    this.#write('testbed', { type: 'levels', phase: 'before', scope: 'server', counts: { keys: 1 } });
    for (let lane = 0; lane < this.#options.lanes; lane += 1) {
      this.#agenda.in(this.#random.between(0, 5), () => this.#session(`p${lane}`, this.#options.sessions));
    }
    this.#agenda.run();
    // Everybody has gone; each name is held once more, so that the last fault is seen to be over.
    this.#locks.forEach((lock, index) => {
      const session = new Session(`last${index}`, `n${index}`, `last${index}`, ++this.#serial);
      this.#write(session.process, {
        type: 'invoke',
        op: session.op,
        action: 'acquire',
        name: session.name,
        queue: true,
        ttl: TTL,
      });
      this.#grant(lock, session.owner);
      const grant = { from: this.#agenda.now, token: lock.token, trouble: false };
      this.#agenda.in(1, () => this.#hold(session, lock, grant, () => {}));
    });
    this.#agenda.run();
    this.#write('testbed', { type: 'levels', phase: 'after', scope: 'server', counts: { keys: 1 } });
    return this.#events;
  }

  /** One acquisition and what follows it; then the next. */
  #session(process: string, left: number): void {
    if (left === 0) return;
    const index = this.#random.below(this.#locks.length);
    const lock = this.#locks[index] as SimulatedLock;
    const session = new Session(process, `n${index}`, `${process}.${++this.#serial}`, ++this.#serial);
    const next = (by = process): void => {
      this.#agenda.in(this.#random.between(0.1, 3), () => this.#session(by, left - 1));
    };
    const queue = this.#random.chance(0.8);
    const sentAt = this.#agenda.now;
    const { op, name, owner } = session;
    this.#write(process, { type: 'invoke', op, action: 'acquire', name, queue, ttl: TTL });
    const trouble = this.#random.chance(this.#options.trouble ?? 0.2);

    if (trouble && this.#random.chance(0.2)) {
      this.#loseAnswer(session, lock, next);
      return;
    }
    const granted = (from: number): void => {
      const { token } = lock;
      this.#agenda.in(this.#delay(), () => this.#hold(session, lock, { from, token, trouble }, next));
    };
    this.#agenda.in(this.#delay(), () => {
      if (lock.holder === undefined && lock.queue.length === 0) {
        this.#grant(lock, owner);
        granted(sentAt);
        return;
      }
      if (queue) {
        lock.queue.push({ owner, granted: () => granted(this.#agenda.now) });
        this.#agenda.in(0.05, () => this.#write(process, { type: 'queued', name, owner }));
        return;
      }
      this.#agenda.in(this.#delay(), () => {
        this.#write(process, { type: 'fail', op, reason: 'contended' });
        next();
      });
    });
  }

  /** The request may arrive, its answer does not; whatever it did ends with its ttl. */
  #loseAnswer(session: Session, lock: SimulatedLock, next: (by?: string) => void): void {
    this.#agenda.in(this.#delay(), () => {
      if (lock.holder === undefined && lock.queue.length === 0 && this.#random.chance(0.7)) {
        this.#grant(lock, session.owner);
      }
      this.#agenda.in(this.#random.between(1, 10), () => {
        if (this.#random.chance(0.5)) {
          this.#write(session.process, { type: 'unknown', op: session.op, reason: 'no answer' });
          next();
          return;
        }
        // Killed before it could say that it held: its register may still have seen the token.
        if (lock.holder?.owner === session.owner) this.#touchRegisters(session, lock, lock.token);
        this.#kill(session.process, next);
      });
    });
  }

  #hold(
    session: Session,
    lock: SimulatedLock,
    { from, token, trouble }: { from: number; token: bigint; trouble: boolean },
    next: (by?: string) => void,
  ): void {
    const { process, name, owner, op } = session;
    const end = this.#random.between(1, 20);
    const until = from + TTL * 0.98;
    this.#write(process, {
      type: 'ok',
      op,
      action: 'acquire',
      owner,
      token: String(token),
      from: this.#agenda.now,
      until,
    });
    this.#agenda.in(end / 2, () => this.#touchRegisters(session, lock, token));
    if (this.#random.chance(0.3)) {
      this.#agenda.in(end * 0.7, () => {
        const sentAt = this.#agenda.now;
        this.#setExpiry(lock, owner, sentAt + TTL);
        const held = { name, owner, from: sentAt + 0.01, until: sentAt + TTL * 0.98 };
        this.#agenda.in(0.01, () => this.#write(process, { type: 'held', ...held }));
      });
    }
    if (!trouble) {
      this.#agenda.in(end, () => this.#release(session, lock, 'answered', next));
      return;
    }
    const fate = this.#random.pick(['killed', 'stopped', 'lost', 'release-unanswered']);
    this.#agenda.in(end, () => {
      if (fate === 'killed') this.#kill(process, next);
      else if (fate === 'release-unanswered') this.#release(session, lock, 'lost', next);
      else this.#lose(session, lock, token, fate === 'stopped' ? 'stopped' : 'lost', next);
    });
  }

  #touchRegisters({ process, name }: Session, lock: SimulatedLock, token: bigint): void {
    const base = lock.version;
    const write = { name, writer: process, token: String(token) };
    this.#write('register', {
      type: 'fenced-write',
      ...write,
      accepted: token >= lock.newestWritten,
    });
    if (token > lock.newestWritten) lock.newestWritten = token;
    lock.version += 1;
    this.#write('register', { type: 'unfenced-write', ...write, base, replaced: base });
  }

  #release(
    { process, name, owner }: Session,
    lock: SimulatedLock,
    answer: 'answered' | 'lost',
    next: (by?: string) => void,
  ): void {
    const op = ++this.#serial;
    this.#write(process, { type: 'invoke', op, action: 'release', name, owner });
    const applied = answer === 'answered' || this.#random.chance(0.5);
    this.#agenda.in(this.#delay(), () => {
      if (applied && lock.holder?.owner === owner) this.#free(lock);
      this.#agenda.in(this.#delay(), () => {
        const outcome: EventBody =
          answer === 'answered'
            ? { type: 'ok', op, action: 'release', released: true }
            : { type: 'unknown', op, reason: 'no answer' };
        this.#write(process, outcome);
        next();
      });
    });
  }

  /** No renewal any more: the holder is told when its validity ends, or, having been stopped, when it goes on. */
  #lose(
    { process, name, owner }: Session,
    lock: SimulatedLock,
    token: bigint,
    how: 'stopped' | 'lost',
    next: () => void,
  ): void {
    const id = `f${++this.#serial}`;
    const told = how === 'stopped' ? TTL * 2 : 0;
    if (how === 'stopped') this.#inject(id, how, process);
    const expires = lock.holder?.owner === owner ? lock.holder.expires : this.#agenda.now;
    this.#agenda.in(Math.max(0, expires - this.#agenda.now - TTL * 0.02) + told, () => {
      if (how === 'stopped') this.#heal(id);
      this.#write(process, { type: 'lost', name, owner, reason: 'expired' });
      const accepted = token >= lock.newestWritten;
      this.#write('register', {
        type: 'fenced-write',
        name,
        writer: process,
        token: String(token),
        accepted,
      });
      next();
    });
  }

  #kill(process: string, next: (by: string) => void): void {
    const id = `f${++this.#serial}`;
    this.#inject(id, 'kill9', process);
    this.#write('testbed', { type: 'process-end', of: process, how: 'killed' });
    this.#heal(id);
    const [lane, life] = process.split('#');
    next(`${lane}#${Number(life ?? 0) + 1}`);
  }

  #inject(id: string, fault: string, process: string): void {
    if (this.#options.faults === false) return;
    this.#write('testbed', {
      type: 'fault',
      phase: 'inject',
      id,
      fault,
      touches: [process],
      recoverWithin: RECOVER_WITHIN,
    });
  }

  #heal(id: string): void {
    if (this.#options.faults !== false) this.#write('testbed', { type: 'fault', phase: 'heal', id });
  }

  #grant(lock: SimulatedLock, owner: string): void {
    lock.token += BigInt(1 + this.#random.below(1000));
    lock.holder = { owner, expires: 0 };
    this.#setExpiry(lock, owner, this.#agenda.now + TTL);
  }

  #setExpiry(lock: SimulatedLock, owner: string, expires: number): void {
    if (lock.holder?.owner !== owner) return;
    lock.holder.expires = Math.max(expires, lock.holder.expires);
    this.#agenda.in(expires - this.#agenda.now, () => {
      if (lock.holder?.owner === owner && lock.holder.expires <= this.#agenda.now) this.#free(lock);
    });
  }

  #free(lock: SimulatedLock): void {
    lock.holder = undefined;
    const head = lock.queue.shift();
    if (head === undefined) return;
    this.#grant(lock, head.owner);
    head.granted();
  }

  #delay(): number {
    return this.#random.between(0.1, 1);
  }

  #write(process: string, body: EventBody): void {
    this.#events.push({ at: this.#agenda.now, process, ...body });
  }
}

class Session {
  readonly process: string;
  readonly name: string;
  readonly owner: string;
  readonly op: number;

  constructor(process: string, name: string, owner: string, op: number) {
    this.process = process;
    this.name = name;
    this.owner = owner;
    this.op = op;
  }
}

/** What is to happen, by time: a binary heap. Things due together happen in the order in which they were put in. */
class Agenda {
  now = 1000;
  readonly #heap: { at: number; order: number; action: () => void }[] = [];
  #order = 0;

  in(delay: number, action: () => void): void {
    this.#heap.push({ at: this.now + delay, order: this.#order++, action });
    let index = this.#heap.length - 1;
    while (index > 0) {
      const parent = (index - 1) >>> 1;
      if (!this.#swapIfEarlier(index, parent)) break;
      index = parent;
    }
  }

  run(): void {
    for (let due = this.#take(); due !== undefined; due = this.#take()) {
      this.now = due.at;
      due.action();
    }
  }

  #take(): { at: number; action: () => void } | undefined {
    const top = this.#heap[0];
    const last = this.#heap.pop();
    if (top === undefined || last === undefined || this.#heap.length === 0) return top;
    this.#heap[0] = last;
    for (let index = 0; ; ) {
      const left = 2 * index + 1;
      const right = left + 1;
      const child = right < this.#heap.length && this.#isEarlier(right, left) ? right : left;
      if (child >= this.#heap.length || !this.#swapIfEarlier(child, index)) return top;
      index = child;
    }
  }

  #swapIfEarlier(a: number, b: number): boolean {
    if (!this.#isEarlier(a, b)) return false;
    const [first, second] = [this.#heap[a], this.#heap[b]];
    if (first === undefined || second === undefined) return false;
    this.#heap[a] = second;
    this.#heap[b] = first;
    return true;
  }

  #isEarlier(a: number, b: number): boolean {
    const [first, second] = [this.#heap[a], this.#heap[b]];
    if (first === undefined || second === undefined) return false;
    return first.at < second.at || (first.at === second.at && first.order < second.order);
  }
}
