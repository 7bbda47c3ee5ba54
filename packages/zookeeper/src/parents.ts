import type { Clock, Timer } from '@holdfast/core';
import type { LastHold } from './alone.js';
import { CODE, hasCode } from './errors.js';
import type { Session } from './session.js';

/** A lock used again within this many ms finds its parent where it was. */
const LINGER = 2000;
/** How many nodes are looked at or removed together. */
const BATCH = 100;
/** How many nodes each process looks at when it starts: among many processes that is enough. */
const SWEEP = 1000;

interface Parent {
  /** How many claims have a node there. */
  claims: number;
  /** Since when none has. */
  idleSince: number;
  lastHold?: LastHold;
  /** The last claim that came after a hold of this process was alone: the next may be, too. */
  alone?: boolean;
}

/**
 * Keeps lock parents from piling up. A parent is removed some time after its last use here; the server refuses while
 * it has children, so removing is safe at any moment: whoever needed it makes it again.
 */
export class Parents {
  readonly #clock: Clock;
  readonly #ready: () => Promise<Session>;
  readonly #commandTimeout: number;
  readonly #known = new Map<string, Parent>();
  #timer: Timer | undefined;
  #closed = false;

  constructor(clock: Clock, ready: () => Promise<Session>, commandTimeout: number) {
    this.#clock = clock;
    this.#ready = ready;
    this.#commandTimeout = commandTimeout;
  }

  /** Probably there: it was not long ago. */
  has(path: string): boolean {
    return this.#known.has(path);
  }

  /** A claim has a node there. */
  enter(path: string): void {
    const parent = this.#known.get(path);
    if (parent === undefined) this.#known.set(path, { claims: 1, idleSince: 0 });
    else parent.claims += 1;
  }

  /** The last hold there, unless a claim of this process has a node there again. */
  lastHold(path: string): LastHold | undefined {
    const parent = this.#known.get(path);
    return parent?.claims === 0 ? parent.lastHold : undefined;
  }

  /** Whether a claim that comes now will probably be alone. */
  probablyAlone(path: string): boolean {
    return this.#known.get(path)?.alone === true;
  }

  /** Whether a claim that came after the last hold was alone. */
  learn(path: string, alone: boolean): void {
    const parent = this.#known.get(path);
    if (parent !== undefined) parent.alone = alone;
  }

  /** A claim's node there has gone. */
  leave(path: string, hold?: LastHold): void {
    const parent = this.#known.get(path);
    if (parent === undefined) return;
    parent.claims -= 1;
    if (hold !== undefined) parent.lastHold = hold;
    parent.idleSince = this.#clock.now();
    if (parent.claims === 0) this.#schedule();
  }

  #schedule(): void {
    if (this.#closed) return;
    this.#timer ??= this.#clock.setTimer(LINGER, () => void this.#tidy());
  }

  async #tidy(): Promise<void> {
    try {
      await this.#removeUnused(await this.#ready(), this.#clock.now() - LINGER);
    } catch {
      // Away: they wait for the next time.
    }
    this.#timer = undefined;
    for (const { claims } of this.#known.values()) if (claims === 0) return this.#schedule();
  }

  async #removeUnused(session: Session, before: number, until?: number): Promise<void> {
    const unused = [...this.#known]
      .filter(([, { claims, idleSince }]) => claims === 0 && idleSince <= before)
      .map(([path]) => path);
    await inBatches(unused, async (path) => {
      this.#known.delete(path);
      await removeIfEmpty(session, path, until ?? this.#deadline());
    });
  }

  /** Removes the empty parents under `home` that other processes left. */
  async sweep(home: string): Promise<void> {
    const session = await this.#ready();
    const names = (await session.children(home, this.#deadline())) ?? [];
    const start = Math.floor(Math.random() * Math.max(1, names.length - SWEEP));
    await inBatches(names.slice(start, start + SWEEP), async (name) => {
      const path = `${home}/${name}`;
      if (this.#closed || this.#known.has(path)) return;
      const stat = await session.stat(path, this.#deadline());
      if (stat?.children === 0) await removeIfEmpty(session, path, this.#deadline());
    });
  }

  /** Removes what it can by then. */
  async close(session: Session | undefined, until: number): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    try {
      if (session !== undefined) await this.#removeUnused(session, Number.POSITIVE_INFINITY, until);
    } catch {
      // The next process that opens sweeps them.
    }
    this.#known.clear();
  }

  #deadline(): number {
    return this.#clock.now() + this.#commandTimeout;
  }
}

async function removeIfEmpty(session: Session, path: string, until: number): Promise<void> {
  try {
    await session.remove(path, until);
  } catch (error) {
    if (!hasCode(error, CODE.notEmpty)) throw error;
  }
}

async function inBatches<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let start = 0; start < items.length; start += BATCH) {
    const settled = await Promise.allSettled(items.slice(start, start + BATCH).map(work));
    const failed = settled.find((outcome) => outcome.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }
}
