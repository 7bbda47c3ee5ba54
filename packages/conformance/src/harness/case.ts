import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LockState, LocksOptions } from '@holdfast/core';
import type { ChildSpec, ConformanceOptions, ServerFaults } from '../options.js';
import { Child } from './child.js';
import { Instance } from './instance.js';
import { childParty, instanceParty, type Party } from './party.js';
import { Physics } from './physics.js';
import { eventually, PROMPT, within } from './time.js';

/**
 * The ground on which one case plays: a tenant of its own on the server, the instances and processes that the case
 * opens in it, and their end. When the case is over nothing of it may be left.
 */
export class Case {
  readonly options: ConformanceOptions;
  /** The tenant of this case alone. */
  readonly prefix: string = `cf-${randomBytes(6).toString('hex')}`;
  readonly #instances: Instance[] = [];
  readonly #children: Child[] = [];
  readonly #cleanups: (() => unknown)[] = [];
  #names = 0;
  #observer: Instance | undefined;

  private constructor(options: ConformanceOptions) {
    this.options = options;
  }

  /** Plays the case on fresh ground, then checks that it left nothing behind. */
  static async play(options: ConformanceOptions, story: (ground: Case) => Promise<void>): Promise<void> {
    const ground = new Case(options);
    try {
      ground.#observer = await ground.open();
      await story(ground);
      await ground.#leave();
    } finally {
      await ground.#end();
    }
  }

  /** An instance that stands aside: it looks, and forces. */
  get observer(): Instance {
    if (this.#observer === undefined) throw new Error('the ground is not open yet');
    return this.#observer;
  }

  /** What the backend declares, as expected values. */
  get physics(): Physics {
    return new Physics(this.observer.locks.backend.capabilities);
  }

  /** A new instance: another `Locks` with a backend of its own, on the same server and in the same tenant. */
  open(locksOptions: LocksOptions = {}): Promise<Instance> {
    return this.#openIn(this.prefix, locksOptions);
  }

  /** An instance of another tenant on the same server. */
  stranger(): Promise<Instance> {
    return this.#openIn(`${this.prefix}-other`, {});
  }

  async #openIn(prefix: string, locksOptions: LocksOptions): Promise<Instance> {
    const instance = await Instance.open(await this.options.create({ prefix }), locksOptions);
    this.#instances.push(instance);
    return instance;
  }

  /** Several instances. */
  async openMany(count: number): Promise<readonly Instance[]> {
    return Promise.all(Array.from({ length: count }, () => this.open()));
  }

  /** Two instances. */
  async pair(): Promise<readonly [Instance, Instance]> {
    return Promise.all([this.open(), this.open()]);
  }

  /** Three instances. */
  async trio(): Promise<readonly [Instance, Instance, Instance]> {
    return Promise.all([this.open(), this.open(), this.open()]);
  }

  /** A name that nobody has used. */
  name(hint = 'lock'): string {
    this.#names++;
    return `${hint}-${this.#names}`;
  }

  /** A real process with the backend under test. */
  async child(): Promise<Child> {
    const child = await Child.start(this.childSpec, this.prefix);
    this.#children.push(child);
    return child;
  }

  get childSpec(): ChildSpec {
    const { child } = this.options;
    if (child === undefined) {
      throw new Error('the backend crosses processes, so describeConformance needs the option child');
    }
    return typeof child === 'function' ? child() : child;
  }

  /** A path of this case alone, where a file marks that somebody is inside a lock. */
  insidePath(): string {
    const path = join(tmpdir(), `${this.prefix}.inside`);
    this.atEnd(() =>
      Promise.all([path, `${path}-0`, `${path}-1`, `${path}-2`].map((each) => rm(each, { force: true }))),
    );
    return path;
  }

  /** Somebody else who can die. */
  async party(): Promise<Party> {
    if (this.physics.capabilities.crossProcess) return childParty(await this.child());
    return instanceParty(await this.open());
  }

  get faults(): ServerFaults {
    const { faults } = this.options;
    if (faults === undefined) throw new Error('describeConformance was given no faults');
    return faults;
  }

  inspect(name: string): Promise<LockState> {
    return this.observer.locks.inspect(name);
  }

  /** The names that the server knows in this tenant. */
  async list(prefix?: string): Promise<readonly LockState[]> {
    const states: LockState[] = [];
    for await (const state of this.observer.locks.list(prefix === undefined ? {} : { prefix }))
      states.push(state);
    return states;
  }

  /** Only so many are left in the queue of the name, and not because the grace for dead waiters has passed. */
  async queueShrinks(name: string, left = 0): Promise<void> {
    const isSo = async (): Promise<boolean> => (await this.inspect(name)).waiters.length === left;
    const soon = Math.min(PROMPT, 0.8 * this.physics.capabilities.grace);
    await eventually(`${left} waiters are left in the queue`, isSo, soon);
  }

  /** Runs at the case's end, whatever happened. */
  atEnd(cleanup: () => unknown): void {
    this.#cleanups.push(cleanup);
  }

  /** What a case leaves at the server is gone once its instances are closed; what died there, once its time is up. */
  async #leave(): Promise<void> {
    for (const { seam } of this.#instances) seam.heal();
    await Promise.all(this.#children.map((child) => child.end()));
    await this.#closeAll();
    this.#observer = await this.open();
    const { capabilities } = this.physics;
    await eventually(
      'the case leaves no lock and no waiter behind',
      async () => (await this.list()).length === 0,
      capabilities.grace + this.physics.freedAfterDeath(this.physics.shortTtl()),
    );
    await this.#closeAll();
    await Promise.all(
      this.#instances.map(({ clock }) => within('after close() no timer is left', clock.idle())),
    );
  }

  async #closeAll(): Promise<void> {
    const closed = Promise.all(this.#instances.map(({ locks }) => locks.close()));
    await within('the instances of the case close', closed, 4 * PROMPT);
  }

  async #end(): Promise<void> {
    for (const { seam } of this.#instances) seam.heal();
    await Promise.allSettled(this.#children.map((child) => child.kill()));
    await Promise.allSettled(
      this.#instances.map(({ locks }) => within('an instance closes', locks.close(), 4 * PROMPT)),
    );
    for (const cleanup of this.#cleanups) await cleanup();
  }
}
