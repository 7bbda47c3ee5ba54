import { type Claim, type Clock, OwnerMap, type Timer } from '@holdfast/core';
import { FAR, LIVENESS, type LockStore, type Outlook, REFRESH, type Refusal } from './store.js';

/** How often the waiters of one `Locks` ask, ms. */
export interface Pacing {
  /** The head of a queue asks no more often than this. */
  readonly shortest: number;
  /** The head of a queue asks at least this often. */
  readonly longest: number;
}

/** One statement carries no more than this many places. */
const BATCH = 500;

/** Where messages arrive, polling only covers a lost message. */
const SAFETY = 1000;

/**
 * The claims of this `Locks` that wait: keeps their places alive, in batches, and tells each when to try again.
 *
 * A turn is learnt from a message where the database can send one, and by asking otherwise. Only the foremost of our
 * own claims for a name asks: the head of the queue often, at first, and less and less while the lock stays held;
 * whoever stands behind n others, n times more seldom. So the load stays the same however many wait.
 */
export class Waitlist {
  readonly #store: Pick<LockStore, 'peek' | 'refresh'>;
  readonly #clock: Clock;
  readonly #pacing: Pacing;
  readonly #pushed: () => boolean;
  readonly #queues = new Map<string, Queue>();
  readonly #owners = new OwnerMap<Waiter>();
  #asking = false;
  #alarm: { readonly due: number; readonly timer: Timer } | undefined;
  #refreshing: Timer | undefined;

  /** @param pushed whether messages arrive at present */
  constructor(
    store: Pick<LockStore, 'peek' | 'refresh'>,
    clock: Clock,
    pacing: Pacing,
    pushed: () => boolean,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#pacing = pacing;
    this.#pushed = pushed;
  }

  /** Wake-ups of this claim count from now on. To be called before its attempt is sent. */
  expect(claim: Claim): void {
    const known = this.#owners.get(claim.owner);
    if (known !== undefined) {
      // What was known of its turn led to the attempt that comes now.
      known.turn = false;
      return;
    }
    this.#owners.set(claim.owner, new Waiter(claim));
    // From here on, not from when it waits: a slow server takes a while from the place to the answer.
    this.#keepAlive();
  }

  /** The claim waits no longer: it was granted, or given up. */
  forget(claim: Claim): void {
    const waiter = this.#owners.get(claim.owner);
    if (waiter === undefined) return;
    this.#owners.delete(claim.owner);
    const queue = this.#queues.get(claim.name);
    queue?.waiters.delete(waiter);
    waiter.settle();
    if (queue?.waiters.size === 0) this.#queues.delete(claim.name);
    else if (queue !== undefined) this.#succeed(queue);
    if (this.#owners.size === 0) this.#disarm();
  }

  /** Resolves when the claim should try again, or the signal aborts. Rejects when its place cannot be kept. */
  wait(claim: Claim, refusal: Refusal, signal: AbortSignal): Promise<void> {
    const waiter = this.#owners.get(claim.owner);
    if (waiter === undefined || waiter.turn || signal.aborted) return Promise.resolve();
    waiter.ticket = refusal.ticket;
    return new Promise((resolve, reject) => {
      const end = (error?: Error): void => {
        signal.removeEventListener('abort', onAbort);
        waiter.waiting = undefined;
        if (error === undefined) resolve();
        else reject(error);
      };
      const onAbort = (): void => end();
      signal.addEventListener('abort', onAbort, { once: true });
      waiter.waiting = end;
      const queue = this.#queueOf(claim.name);
      queue.waiters.add(waiter);
      if (!queue.advance(waiter)) return;
      const ahead = (refusal.position ?? FAR) - 1;
      queue.plan(
        this.#clock.now(),
        { turn: false, ahead, expiresIn: refusal.retryAfter ?? 0 },
        this.#rhythm(),
      );
      this.#arm();
    });
  }

  /** This owner's turn has come. Owners of other processes are not known here. */
  wake(owner: string): void {
    this.#owners.get(owner)?.wake();
  }

  /** Something may have changed: the foremost waiter for each name looks again, at once. */
  disturb(): void {
    for (const queue of this.#queues.values()) queue.due = Math.min(queue.due, this.#clock.now());
    this.#arm();
  }

  close(): void {
    for (const waiter of this.#owners.values()) this.forget(waiter.claim);
    this.#disarm();
    this.#refreshing?.cancel();
    this.#refreshing = undefined;
  }

  #queueOf(name: string): Queue {
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      queue = new Queue();
      this.#queues.set(name, queue);
    }
    return queue;
  }

  /** The foremost has gone, most likely with the lock: whoever follows looks how things stand. */
  #succeed(queue: Queue): void {
    const { pushed, shortest } = this.#rhythm();
    queue.due = Math.min(queue.due, this.#clock.now() + (pushed ? SAFETY : 2 * shortest));
    this.#arm();
  }

  #rhythm(): Pacing & { readonly pushed: boolean } {
    return { ...this.#pacing, pushed: this.#pushed() };
  }

  /** One timer for all names, set for whichever is due first. */
  #arm(): void {
    if (this.#asking) return;
    let due = Number.POSITIVE_INFINITY;
    for (const queue of this.#queues.values()) due = Math.min(due, queue.due);
    if (this.#alarm !== undefined && this.#alarm.due <= due) return;
    this.#alarm?.timer.cancel();
    this.#alarm = undefined;
    if (due === Number.POSITIVE_INFINITY) return;
    const timer = this.#clock.setTimer(Math.max(0, due - this.#clock.now()), () => {
      this.#alarm = undefined;
      this.#ask().catch(() => {});
    });
    this.#alarm = { due, timer };
  }

  async #ask(): Promise<void> {
    this.#asking = true;
    const now = this.#clock.now();
    const asked: { queue: Queue; waiter: Waiter; name: string; ticket: number }[] = [];
    for (const [name, queue] of this.#queues) {
      if (queue.due > now + 1) continue;
      queue.due = Number.POSITIVE_INFINITY;
      const waiter = queue.foremost();
      if (waiter?.ticket === undefined) continue;
      asked.push({ queue, waiter, name, ticket: waiter.ticket });
    }
    for (let start = 0; start < asked.length; start += BATCH) {
      const batch = asked.slice(start, start + BATCH);
      try {
        const outlooks = await this.#store.peek(batch);
        batch.forEach(({ queue, waiter }, index) => {
          const outlook = outlooks[index];
          if (outlook === undefined) return;
          if (outlook.turn) waiter.wake();
          else queue.plan(this.#clock.now(), outlook, this.#rhythm());
        });
      } catch (error) {
        for (const { waiter } of batch) waiter.settle(error as Error);
      }
    }
    this.#asking = false;
    this.#arm();
  }

  /** The timer may outlast those that it was set for: taking it back for each that comes and goes would cost more. */
  #keepAlive(): void {
    this.#refreshing ??= this.#clock.setTimer(REFRESH, () => {
      this.#refresh()
        .catch(() => {})
        .finally(() => {
          this.#refreshing = undefined;
          if (this.#owners.size > 0) this.#keepAlive();
        });
    });
  }

  /** A place that has gone is joined again, at the end; one that cannot be kept is the caller's to know. */
  async #refresh(): Promise<void> {
    const waiters = this.#owners.values().filter(({ ticket }) => ticket !== undefined);
    for (let start = 0; start < waiters.length; start += BATCH) {
      const batch = waiters.slice(start, start + BATCH);
      try {
        const alive = await this.#store.refresh(batch.map(({ claim }) => claim));
        for (const waiter of batch) if (!alive.has(waiter.claim.owner)) waiter.wake();
      } catch (error) {
        for (const waiter of batch) waiter.settle(error as Error);
      }
    }
  }

  #disarm(): void {
    this.#alarm?.timer.cancel();
    this.#alarm = undefined;
  }
}

class Waiter {
  readonly claim: Claim;
  ticket: number | undefined;
  /** A wake-up that came while nobody was waiting for it. */
  turn = false;
  waiting: ((error?: Error) => void) | undefined;

  constructor(claim: Claim) {
    this.claim = claim;
  }

  isBefore(other: Waiter | undefined): boolean {
    return this.ticket !== undefined && (other?.ticket === undefined || this.ticket < other.ticket);
  }

  wake(): void {
    this.turn = true;
    this.settle();
  }

  settle(error?: Error): void {
    this.waiting?.(error);
  }
}

/** Our claims for one name that wait, or have waited. */
class Queue {
  readonly waiters = new Set<Waiter>();
  /** When the foremost should ask. */
  due = Number.POSITIVE_INFINITY;
  #since = 0;
  #ahead = Number.POSITIVE_INFINITY;

  #first: Waiter | undefined;

  /** The one that waits with the smallest ticket. */
  foremost(): Waiter | undefined {
    if (this.#first?.waiting !== undefined && this.waiters.has(this.#first)) return this.#first;
    this.#first = undefined;
    for (const waiter of this.waiters) {
      if (waiter.waiting !== undefined && waiter.isBefore(this.#first)) this.#first = waiter;
    }
    return this.#first;
  }

  /** Whether this waiter, which has begun to wait, is the foremost now. */
  advance(waiter: Waiter): boolean {
    if (waiter.isBefore(this.foremost())) this.#first = waiter;
    return this.#first === waiter;
  }

  /** Sets when to ask next: the longer nothing has moved, the later. */
  plan(now: number, outlook: Outlook, rhythm: Pacing & { readonly pushed: boolean }): void {
    if (outlook.ahead !== this.#ahead) this.#since = now;
    this.#ahead = outlook.ahead;
    const still = now - this.#since;
    const calm = rhythm.pushed ? SAFETY : Math.min(rhythm.longest, Math.max(rhythm.shortest, still / 10));
    const pause = Math.min(calm * (1 + outlook.ahead), LIVENESS / 3);
    // Nobody announces that a hold has run out. One more ms, so as not to come just before it has.
    const wait =
      outlook.ahead === 0 && outlook.expiresIn > 0 ? Math.min(pause, outlook.expiresIn + 1) : pause;
    this.due = now + wait * (0.9 + 0.2 * Math.random());
  }
}
