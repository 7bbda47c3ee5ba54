import {
  type AcquireOptions,
  createLocks,
  type DistributedLock,
  type LockBackend,
  type LockEvents,
  type LockHandle,
  type LockOptions,
  type Locks,
  type LocksOptions,
} from '@holdfast/core';
import { CaseClock } from './clock.js';
import { Seam } from './seam.js';
import { within } from './time.js';

type EventName = keyof LockEvents;

const EVENTS: readonly EventName[] = ['waiting', 'acquired', 'renewed', 'lost', 'released', 'error'];

/** An event that an instance told, in the order in which it told them. */
export type Told = { [E in EventName]: LockEvents[E] & { readonly event: E } }[EventName];

/** One `Locks` on the backend under test, with its seam, its clock and everything that it has told. */
export class Instance {
  readonly locks: Locks;
  readonly seam: Seam;
  readonly clock: CaseClock;
  readonly told: Told[] = [];
  readonly #expecting = new Set<() => void>();

  private constructor(locks: Locks, seam: Seam, clock: CaseClock) {
    this.locks = locks;
    this.seam = seam;
    this.clock = clock;
    for (const event of EVENTS) {
      locks.on(event, (payload) => {
        this.told.push({ ...payload, event } as Told);
        for (const look of this.#expecting) look();
      });
    }
  }

  static async open(backend: LockBackend, options: LocksOptions = {}): Promise<Instance> {
    const seam = new Seam(backend);
    const clock = new CaseClock();
    return new Instance(await createLocks(seam.backend, { clock, ...options }), seam, clock);
  }

  lock(name: string, defaults?: LockOptions): DistributedLock {
    return this.locks.lock(name, defaults);
  }

  acquire(name: string, options?: AcquireOptions): Promise<LockHandle> {
    return this.locks.lock(name).acquire(options);
  }

  tryAcquire(name: string, options?: Omit<AcquireOptions, 'wait'>): Promise<LockHandle | null> {
    return this.locks.lock(name).tryAcquire(options);
  }

  /** What it told so far of one kind, about one name. */
  seen<E extends EventName>(event: E, name: string): readonly (LockEvents[E] & { readonly event: E })[] {
    return this.told.filter(
      (told): told is Told & LockEvents[E] & { readonly event: E } =>
        told.event === event && told.name === name,
    );
  }

  /** Resolves with the `count`th event of that kind about that name, whether it was told already or comes. */
  event<E extends EventName>(event: E, name: string, count = 1, ms?: number): Promise<LockEvents[E]> {
    const what = (): string => {
      const told = this.told.map(
        ({ event, at, ...rest }) => `${event} ${at.toISOString()} ${describe(rest)}`,
      );
      return `event ${event} number ${count} about ${JSON.stringify(name)}, after ${told.join('; ') || 'none'}`;
    };
    return within(what, this.#expect(event, name, count), ms);
  }

  #expect<E extends EventName>(event: E, name: string, count: number): Promise<LockEvents[E]> {
    return new Promise((resolve) => {
      const look = (): void => {
        const found = this.seen(event, name)[count - 1];
        if (found === undefined) return;
        this.#expecting.delete(look);
        resolve(found);
      };
      this.#expecting.add(look);
      look();
    });
  }
}

function describe({ error, owner }: { readonly error?: Error; readonly owner?: string }): string {
  return [owner, error?.message].filter((part) => part !== undefined).join(' ');
}
