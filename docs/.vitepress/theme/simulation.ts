import {
  createLocks,
  isHoldfastError,
  type LockHandle,
  type Locks,
  MemoryStore,
  memoryBackend,
  systemClock,
} from '@holdfast/core';
import { reactive } from 'vue';

/** What a client of the page is about. */
export type Activity = 'idle' | 'waiting' | 'holding' | 'paused' | 'lost';

export interface Line {
  readonly at: string;
  readonly text: string;
  readonly kind: 'plain' | 'good' | 'bad';
}

/** One client as the page shows it. */
export interface ClientView {
  readonly name: string;
  activity: Activity;
  token: string;
  /** What the client itself believes: 0 to 1 of its ttl left. While it is paused it believes nothing new. */
  left: number;
  /** It stands still: like a process that is stopped, or collects garbage. */
  paused: boolean;
}

export interface SimulationView {
  readonly clients: ClientView[];
  holder: string;
  queue: string[];
  /** What the guarded resource keeps. */
  value: string;
  seen: string;
  refused: number;
  log: Line[];
  ttl: number;
}

const NAME = 'order:42';
const LONGEST_LOG = 40;

/**
 * Several clients on one memory backend, and a resource that refuses tokens older than the newest that it has seen. Each client
 * is a `Locks` of its own, as if in a process of its own.
 */
export class Simulation {
  readonly view: SimulationView;
  readonly #store = new MemoryStore(systemClock);
  readonly #started = performance.now();
  #clients: SimulatedClient[] = [];
  #newest = 0n;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(names: readonly string[], ttl: number) {
    this.view = reactive({
      clients: names.map((name) => ({ name, activity: 'idle', token: '', left: 0, paused: false })),
      holder: '',
      queue: [],
      value: '(nothing yet)',
      seen: '',
      refused: 0,
      log: [],
      ttl,
    });
  }

  async start(): Promise<void> {
    this.#clients = await Promise.all(
      this.view.clients.map(async (view) => {
        const locks = await createLocks(memoryBackend({ store: this.#store }));
        return new SimulatedClient(this, view, locks);
      }),
    );
    this.#timer = setInterval(() => void this.refresh(), 100);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#clients.map((client) => client.close()));
  }

  client(name: string): SimulatedClient {
    const found = this.#clients.find(({ view }) => view.name === name);
    if (found === undefined) throw new Error(`there is no client ${name}`);
    return found;
  }

  /** The resource's half of fencing. */
  write(client: string, token: bigint): boolean {
    if (token < this.#newest) {
      this.view.refused += 1;
      this.say(
        `the resource refuses ${client}: token ${short(token)} is older than ${short(this.#newest)}`,
        'bad',
      );
      return false;
    }
    this.#newest = token;
    this.view.seen = short(token);
    this.view.value = `written by ${client}`;
    this.say(`${client} writes with token ${short(token)}`, 'good');
    return true;
  }

  say(text: string, kind: Line['kind'] = 'plain'): void {
    const at = ((performance.now() - this.#started) / 1000).toFixed(1);
    this.view.log = [{ at, text, kind }, ...this.view.log].slice(0, LONGEST_LOG);
  }

  /** Looks at the lock as an onlooker does, and at each client's own belief. */
  async refresh(): Promise<void> {
    for (const client of this.#clients) client.look();
    const [anyone] = this.#clients;
    if (anyone === undefined) return;
    const state = await anyone.locks.inspect(NAME);
    this.view.holder = this.#nameOf(state.owner);
    this.view.queue = state.waiters.map(({ owner }) => this.#nameOf(owner));
  }

  #nameOf(owner: string | undefined): string {
    if (owner === undefined) return '';
    return this.#clients.find((client) => client.owners.has(owner))?.view.name ?? '?';
  }
}

/** A client: takes, holds, pauses, writes, gives back. */
export class SimulatedClient {
  readonly view: ClientView;
  readonly locks: Locks;
  /** Every owner that it went by, so that the queue can be shown by name. */
  readonly owners = new Set<string>();
  readonly #scene: Simulation;
  #hold: LockHandle | undefined;
  #giveUp: AbortController | undefined;

  constructor(scene: Simulation, view: ClientView, locks: Locks) {
    this.#scene = scene;
    this.view = view;
    this.locks = locks;
    locks.on('waiting', ({ owner }) => this.#goesBy(owner));
    locks.on('acquired', ({ owner }) => this.#goesBy(owner));
  }

  async acquire(): Promise<void> {
    const { view } = this;
    view.activity = 'waiting';
    view.token = '';
    this.#giveUp = new AbortController();
    try {
      // Without renewal, so that a pause past the ttl loses the lock as it does in a process that stands still.
      const hold = await this.locks
        .lock(NAME)
        .acquire({ ttl: this.#scene.view.ttl, renew: false, signal: this.#giveUp.signal });
      this.#hold = hold;
      view.activity = 'holding';
      view.token = short(hold.fencingToken);
      this.#scene.say(`${view.name} holds the lock, token ${view.token}`, 'good');
    } catch (error) {
      view.activity = 'idle';
      const gaveUp = this.#giveUp.signal.aborted;
      this.#scene.say(gaveUp ? `${view.name} gives up waiting` : `${view.name}: ${String(error)}`, 'plain');
    }
    await this.#scene.refresh();
  }

  giveUp(): void {
    this.#giveUp?.abort(new Error('gave up'));
  }

  pause(): void {
    this.view.paused = true;
    this.view.activity = 'paused';
    this.#scene.say(`${this.view.name} stands still`);
  }

  /** Comes back in the middle of its next line: it does not look whether it still holds. */
  resume(): void {
    this.view.paused = false;
    this.#scene.say(`${this.view.name} comes back, and writes before it looks`);
    this.write();
    this.look();
    if (this.view.activity === 'lost')
      this.#scene.say(`${this.view.name} learns that its lock was lost`, 'bad');
  }

  write(): void {
    if (this.#hold !== undefined) this.#scene.write(this.view.name, this.#hold.fencingToken);
  }

  async extend(): Promise<void> {
    try {
      await this.#hold?.extend();
      this.#scene.say(`${this.view.name} extends its hold`);
    } catch (error) {
      if (!isHoldfastError(error, 'LOCK_LOST')) throw error;
      this.#scene.say(`${this.view.name} cannot extend: lost`, 'bad');
    }
    this.look();
  }

  async release(): Promise<void> {
    const released = await this.#hold?.release();
    this.#hold = undefined;
    this.view.activity = 'idle';
    this.view.left = 0;
    this.#scene.say(
      released === true
        ? `${this.view.name} gives the lock back`
        : `${this.view.name} had lost it: nothing to give back`,
    );
    await this.#scene.refresh();
  }

  /** What it believes now. While it stands still it looks at nothing. */
  look(): void {
    const { view } = this;
    if (view.paused || this.#hold === undefined) return;
    view.left = this.#hold.remaining() / this.#hold.ttl;
    view.activity = this.#hold.isHeld() ? 'holding' : 'lost';
  }

  close(): Promise<void> {
    return this.locks.close();
  }

  #goesBy(owner: string | undefined): void {
    if (owner !== undefined) this.owners.add(owner);
  }
}

/** Tokens are large; their ends tell them apart. */
function short(token: bigint): string {
  return `…${String(token).slice(-6)}`;
}
