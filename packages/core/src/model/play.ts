import type { Claim, LockBackend } from '../backend.js';
import { isHoldfastError } from '../errors.js';
import type { LockHandle } from '../handle.js';
import type { AcquireOptions } from '../lock.js';
import { createLocks, type Locks } from '../locks.js';
import { memoryBackend } from '../memory/backend.js';
import { MemoryStore } from '../memory/store.js';
import { ManualClock } from '../testing/manual-clock.js';
import { ClientClock } from './client-clock.js';
import { Line } from './network.js';
import type { Step, Story } from './story.js';

/** Breaks the server on purpose: to show that the model notices. */
export type Spoil = (server: LockBackend) => LockBackend;

const COMMAND_TIMEOUT = 1000;
/** ms: machines that are suspended take longer to wake up, and clocks that count suspension have a grain. */
const SHORTEST_SUSPENSION = 50;
/** Longer than any ttl, tail, grace, backoff and unanswered request of a story. */
const LONG_ENOUGH = 60_000;

interface Client {
  readonly locks: Locks;
  readonly clock: ClientClock;
  readonly line: Line;
}

/** A handle, and what has been seen of it. */
interface Held {
  readonly handle: LockHandle;
  readonly client: Client;
  readonly minHold: number;
  /** When its grant was known, in true time. */
  readonly since: number;
  /** As acquired, adopted, or last extended. */
  ttl: number;
  /** The caller has asked to end it: released or handed over. */
  ended: boolean;
  /** It has said that it is not held: it must never say otherwise again. */
  seenGone: boolean;
}

/** A handle as it is handed out. */
type Received = Pick<Held, 'handle' | 'client' | 'minHold' | 'ttl'>;

interface Waiting {
  readonly name: string;
  readonly leave: AbortController;
  settled: boolean;
}

/**
 * Plays a story against the engine, the memory backend as the server, and checks after everything that happens, and at
 * every grant at the server, that the specification holds. Throws at the first thing that it says cannot be.
 */
export async function play(story: Story, spoil: Spoil = (server) => server): Promise<void> {
  const stage = new Stage(story, spoil);
  const chance = Math.random;
  Math.random = dice(story.luck);
  try {
    await stage.open();
    for (const step of story.steps) await stage.take(step);
    await stage.finish();
  } finally {
    await stage.abandon();
    Math.random = chance;
  }
}

/** A linear congruential generator: good enough for jitter. */
function dice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % (2 ** 31 - 1);
    return state / (2 ** 31 - 1);
  };
}

class Stage {
  readonly #story: Story;
  readonly #spoil: Spoil;
  readonly #true = new ManualClock();
  readonly #store = new MemoryStore(this.#true);
  readonly #clients: Client[] = [];
  readonly #held: Held[] = [];
  readonly #waiting: Waiting[] = [];
  /** Handles whose grant somebody broke: exclusion does not speak of them. */
  readonly #forced = new Set<bigint>();
  /** The newest token that any caller has seen, by name. */
  readonly #newest = new Map<string, bigint>();
  /** Until when a tail keeps the name, by name, in true time. */
  readonly #tails = new Map<string, number>();
  readonly #released = new Map<string, number>();
  readonly #work = new Set<Promise<void>>();
  /** Owners whose grant the server has made. */
  readonly #granted = new Set<string>();
  #violation: Error | undefined;
  /** Nobody wants anything any more: what is still granted is let go. */
  #isOver = false;

  constructor(story: Story, spoil: Spoil) {
    this.#story = story;
    this.#spoil = spoil;
  }

  async open(): Promise<void> {
    for (const [index, rate] of this.#story.rates.entries()) {
      const clock = new ClientClock(this.#true, rate);
      const server = this.#watched(this.#spoil(memoryBackend({ store: this.#store })));
      const line = new Line(server, this.#true, clock, this.#story.fates[index] ?? []);
      const options = { clock, commandTimeout: COMMAND_TIMEOUT, unavailableAfter: 4000 };
      this.#clients.push({ locks: await createLocks(line.backend, options), clock, line });
    }
  }

  /** The server, with a look at every grant in the moment in which it is made. */
  #watched(server: LockBackend): LockBackend {
    const attempt: LockBackend['attempt'] = async (claim) => {
      const answer = await server.attempt(claim);
      if ('fencingToken' in answer && !this.#granted.has(claim.owner)) {
        this.#granted.add(claim.owner);
        this.#guard(() => this.#grantedTo(claim));
      }
      return answer;
    };
    return new Proxy(server, {
      get: (target, property) => {
        if (property === 'attempt') return attempt;
        const value: unknown = Reflect.get(target, property, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }

  /** Loss is signalled before anyone else can hold; nobody is granted a tail. */
  #grantedTo(claim: Claim): void {
    for (const held of this.#held) {
      const { handle, client } = held;
      if (handle.name !== claim.name || this.#forced.has(handle.fencingToken)) continue;
      if (!client.clock.isRunning) continue;
      if (handle.isHeld()) throw this.#broken(`${claim.owner} was granted while ${describe(held)} was held`);
      if (!held.ended && !handle.signal.aborted)
        throw this.#broken(`${claim.owner} was granted before ${describe(held)} was told of its loss`);
    }
    const tail = this.#tails.get(claim.name) ?? 0;
    if (this.#true.now() < tail - 1) {
      throw this.#broken(`${claim.owner} was granted ${tail - this.#true.now()} ms before the end of a tail`);
    }
  }

  async take(step: Step): Promise<void> {
    await this.#do(step);
    await this.#true.idle();
    this.#look();
    if (this.#isTidy) this.#lookAtQueues();
  }

  async #do(step: Step): Promise<void> {
    switch (step.do) {
      case 'acquire':
        return this.#acquire(step);
      case 'abort':
        return pick(
          this.#waiting.filter(({ settled }) => !settled),
          step.which,
        )?.leave.abort();
      case 'release':
        return this.#with(step.which, (held) => this.#release(held));
      case 'extend':
        return this.#with(step.which, async (held) => {
          await held.handle.extend(step.ttl);
          held.ttl = step.ttl;
        });
      case 'verify':
        return this.#with(step.which, async ({ handle }) => {
          const ours = await handle.verify();
          // Another question that was under way may have been answered in the same moment: that it was forced since.
          if (ours && !handle.isHeld() && !this.#forced.has(handle.fencingToken))
            throw this.#broken('verify() was true of a handle that is not held');
        });
      case 'hand over':
        return this.#with(step.which, (held) => this.#handOver(held, step.client));
      case 'force':
        return this.#force(step.client, step.name);
      case 'stop':
        return pick(this.#running, step.client)?.clock.stop();
      case 'suspend':
        return pick(this.#running, step.client)?.clock.suspend();
      case 'resume':
        return this.#resume(
          pick(
            this.#clients.filter(({ clock }) => !clock.isRunning),
            step.client,
          ),
          step.first,
        );
      case 'set wall':
        return pick(this.#clients, step.client)?.clock.setWall(step.by);
      case 'pass time':
        return this.#passTime(step.ms);
    }
  }

  #acquire(step: Extract<Step, { do: 'acquire' }>): void {
    const client = pick(this.#running, step.client);
    if (client === undefined) return;
    const name = this.#name(step.name);
    const waiting: Waiting = { name, leave: new AbortController(), settled: false };
    this.#waiting.push(waiting);
    const { wait, ttl, renew, maxHold, minHold } = step;
    const signal = waiting.leave.signal;
    const options: AcquireOptions = {
      wait,
      ttl,
      renew,
      maxHold,
      signal,
      ...(minHold > 0 ? { minHold } : {}),
    };
    const newestBefore = this.#newest.get(name) ?? 0n;
    const started = client.clock.now();
    this.#inBackground(async () => {
      try {
        const handle = await client.locks.lock(name).acquire(options);
        this.#receive({ handle, client, minHold, ttl }, newestBefore);
      } catch (error) {
        this.#expectAllowed(error, ['LOCK_TIMEOUT', 'BACKEND_UNAVAILABLE'], signal);
      } finally {
        waiting.settled = true;
        const limit = (wait === 0 ? COMMAND_TIMEOUT : wait) + 50;
        const took = client.clock.now() - started;
        if (took > limit && this.#isTimely) {
          this.#violate(`an acquisition with wait ${wait} took ${took} ms`);
        }
      }
    });
  }

  /** Clients that never stand still have no excuse for being late. */
  get #isTimely(): boolean {
    return !this.#story.steps.some((step) => step.do === 'stop' || step.do === 'suspend');
  }

  /** And without faults none for what they leave at the server. */
  get #isTidy(): boolean {
    return this.#isTimely && this.#story.fates.every((fates) => fates.length === 0);
  }

  #receive(received: Received, newestBefore: bigint): void {
    const { handle, client } = received;
    const { name, fencingToken } = handle;
    if (fencingToken <= newestBefore) {
      throw this.#broken(
        `token ${fencingToken} of ${name} is not above ${newestBefore}, seen before it was asked for`,
      );
    }
    if (this.#held.some((other) => other.handle.fencingToken === fencingToken)) {
      throw this.#broken(`token ${fencingToken} was given twice`);
    }
    if (client.clock.isRunning && !handle.isHeld() && !handle.signal.aborted && handle.remaining() <= 0) {
      throw this.#broken('a handle was handed out with no validity left');
    }
    this.#seeToken(name, fencingToken);
    this.#keep(received);
  }

  #keep(kept: Received): void {
    const held: Held = { ...kept, since: this.#true.now(), ended: false, seenGone: false };
    this.#held.push(held);
    this.#look();
    if (this.#isOver) this.#inBackground(() => this.#letGo(held));
  }

  async #release(held: Held): Promise<void> {
    const { handle, minHold, since } = held;
    held.ended = true;
    const released = await handle.release();
    if (!released) return;
    const times = (this.#released.get(handle.owner) ?? 0) + 1;
    this.#released.set(handle.owner, times);
    if (times > 1) throw this.#broken(`${describe(held)} was released ${times} times`);
    if (minHold > 0 && !this.#forced.has(handle.fencingToken))
      this.#tails.set(handle.name, since + minHold * 0.99 - 5);
  }

  async #letGo(held: Held): Promise<void> {
    try {
      await this.#release(held);
    } catch (error) {
      this.#expectAllowed(error, ['BACKEND_UNAVAILABLE']);
    }
  }

  async #handOver(held: Held, to: number): Promise<void> {
    const client = pick(this.#running, to);
    if (client === undefined || !held.handle.isHeld()) return;
    const text = held.handle.serialize();
    held.ended = true;
    const handle = await client.locks.adopt(text);
    if (handle.fencingToken !== held.handle.fencingToken) throw this.#broken('an adoption changed the token');
    const { minHold, ttl } = held;
    this.#keep({ handle, client, minHold, ttl });
  }

  #force(from: number, which: number): void {
    const client = pick(this.#running, from);
    if (client === undefined) return;
    const name = this.#name(which);
    this.#inBackground(async () => {
      // Whether it was carried out or not, and whenever it is: what is held now may be broken from now on.
      for (const { handle } of this.#held) if (handle.name === name) this.#forced.add(handle.fencingToken);
      this.#tails.delete(name);
      const holder = this.#store.find(keyOf(name))?.holder;
      if (holder !== undefined) this.#forced.add(holder.token);
      try {
        await client.locks.forceRelease(
          name,
          holder === undefined ? { fencingToken: 1n } : { fencingToken: holder.token },
        );
      } catch (error) {
        this.#expectAllowed(error, ['BACKEND_UNAVAILABLE']);
      }
      this.#tails.delete(name);
    });
  }

  async #resume(client: Client | undefined, first: 'timers' | 'answers'): Promise<void> {
    if (client === undefined) return;
    const { suspendedFor = Infinity } = client.clock;
    if (suspendedFor < SHORTEST_SUSPENSION) await this.#passTime(SHORTEST_SUSPENSION - suspendedFor);
    client.clock.resume(first);
    // Before anything else runs in that process, its handles already tell the truth.
    this.#look();
    await this.#true.idle();
    client.clock.fireDue();
  }

  get #running(): readonly Client[] {
    return this.#clients.filter(({ clock }) => clock.isRunning);
  }

  /** A step that concerns a handle, most often one that lives: what it throws must be what the specification says. */
  #with(which: number, what: (held: Held) => Promise<void> | void): void {
    const awake = this.#held.filter(({ client }) => client.clock.isRunning);
    const alive = awake.filter(({ seenGone }) => !seenGone);
    const held = pick(alive.length > 0 && which < 6 ? alive : awake, which);
    if (held === undefined) return;
    this.#inBackground(async () => {
      try {
        await what(held);
      } catch (error) {
        this.#expectAllowed(error, ['LOCK_LOST', 'BACKEND_UNAVAILABLE']);
      }
    });
  }

  /** Exclusion, and that what has gone does not come back. */
  #look(): void {
    const byName = new Map<string, Held>();
    for (const held of this.#held) {
      if (!held.client.clock.isRunning) continue;
      const isHeld = held.handle.isHeld();
      if (isHeld && held.seenGone) throw this.#broken(`${describe(held)} had gone, and came back`);
      if (isHeld && held.handle.signal.aborted) throw this.#broken(`${describe(held)} is held and told lost`);
      if (!isHeld) held.seenGone = true;
      if (isHeld) this.#lookAtTime(held);
      if (!isHeld || this.#forced.has(held.handle.fencingToken)) continue;
      const other = byName.get(held.handle.name);
      if (other !== undefined) throw this.#broken(`${describe(held)} and ${describe(other)} are both held`);
      byName.set(held.handle.name, held);
    }
  }

  /** What it shows of its time is what was asked for last: no answer to an older question brings the old ttl back. */
  #lookAtTime(held: Held): void {
    const { handle, ttl } = held;
    if (handle.ttl !== ttl) throw this.#broken(`${describe(held)} shows a ttl of ${handle.ttl}, not ${ttl}`);
    if (handle.remaining() > ttl)
      throw this.#broken(`${describe(held)} is valid for ${handle.remaining()} of ${ttl}`);
  }

  /** Nobody has a place in a queue who is not waiting. */
  #lookAtQueues(): void {
    for (const { name, queue } of this.#store.entries.values()) {
      const waiting = this.#waiting.filter((one) => !one.settled && keyOf(one.name) === name).length;
      if (queue.size > waiting)
        throw this.#broken(`${queue.size} places in the queue for ${waiting} who wait`);
    }
  }

  async #passTime(ms: number): Promise<void> {
    const end = this.#true.now() + ms;
    for (;;) {
      await this.#true.advance(Math.min(100, end - this.#true.now()));
      this.#look();
      this.#rethrow();
      if (this.#true.now() >= end) return;
    }
  }

  /** Everything heals, everybody lets go: then nothing may be left, and every name can be had again. */
  async finish(): Promise<void> {
    this.#isOver = true;
    await this.#passTime(SHORTEST_SUSPENSION);
    for (const client of this.#clients) {
      client.line.heal();
      client.clock.resume();
    }
    this.#look();
    for (const { leave } of this.#waiting) leave.abort();
    await this.#true.idle();
    for (const held of this.#held) this.#inBackground(() => this.#letGo(held));
    await this.#true.advance(LONG_ENOUGH);
    this.#look();
    this.#rethrow();
    if (this.#waiting.some(({ settled }) => !settled)) throw this.#broken('an acquisition never settled');
    if (this.#work.size > 0) throw this.#broken(`${this.#work.size} calls never settled`);
    const left = [...this.#store.entries.keys()];
    if (left.length > 0) throw this.#broken(`left at the server: ${JSON.stringify(left)}`);
    for (const { locks } of this.#clients) {
      const handle = await locks.lock(this.#name(0)).tryAcquire();
      if (handle === null) throw this.#broken('a free name could not be had');
      this.#seeToken(handle.name, handle.fencingToken);
      if (!(await handle.release())) throw this.#broken('a release at peace was false');
    }
    const closed = Promise.all(this.#clients.map(({ locks }) => locks.close()));
    await this.#true.advance(LONG_ENOUGH);
    await closed;
    if (this.#true.timers > 0) throw this.#broken(`${this.#true.timers} timers are left after close()`);
  }

  /** Ends a story that went wrong, so that it does not disturb the next. */
  async abandon(): Promise<void> {
    for (const { line, clock } of this.#clients) {
      line.heal();
      clock.resume();
    }
    for (const { locks } of this.#clients) locks.close().catch(noop);
    await this.#true.advance(LONG_ENOUGH);
  }

  #seeToken(name: string, token: bigint): void {
    const newest = this.#newest.get(name) ?? 0n;
    if (token > newest) this.#newest.set(name, token);
  }

  #expectAllowed(error: unknown, codes: readonly string[], signal?: AbortSignal): void {
    if (signal?.aborted && error === signal.reason) return;
    if (isHoldfastError(error) && codes.includes(error.code)) return;
    throw error;
  }

  #inBackground(work: () => Promise<void>): void {
    const running = work()
      .catch((error: unknown) => {
        this.#violation ??= error as Error;
      })
      .finally(() => this.#work.delete(running));
    this.#work.add(running);
  }

  #guard(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.#violation ??= error as Error;
    }
  }

  #violate(what: string): void {
    this.#violation ??= this.#broken(what);
  }

  #rethrow(): void {
    if (this.#violation !== undefined) throw this.#violation;
  }

  #broken(what: string): Error {
    return new Error(`at ${this.#true.now()} ms: ${what}`);
  }

  #name(which: number): string {
    return `name ${which % this.#story.names}`;
  }
}

function pick<T>(from: readonly T[], which: number): T | undefined {
  return from[which % Math.max(1, from.length)];
}

/** As the memory backend stores it. */
function keyOf(name: string): string {
  return `holdfast\u0000${name}`;
}

function describe({ handle }: Held): string {
  return `${handle.owner} (token ${handle.fencingToken})`;
}

function noop(): void {}
