import type { Desk } from './desk.js';
import { isUnanswered } from './errors.js';
import { inOrder } from './names.js';
import type { Places } from './places.js';
import type { Session } from './session.js';

/** One grant to be broken, by a transaction that has been sent and not answered. */
interface Blow {
  readonly session: Session;
  /** Left by the transaction that breaks the grant: who finds it there, broke it. */
  readonly mark: string;
}

/**
 * Frees names whoever holds them.
 *
 * That a node has gone does not say who deleted it. So the transaction that deletes it leaves a mark, and asking again
 * after a lost answer looks for that; a mark ends with its session at the latest.
 */
export class Forcing {
  readonly #desk: Desk;
  readonly #places: Places;
  /** Without answer yet, by name and expected token: the next to ask for the same looks what became of it. */
  readonly #unanswered = new Map<string, Blow>();

  constructor(desk: Desk, places: Places) {
    this.#desk = desk;
    this.#places = places;
  }

  /** True if this removed the grant, in this call or in one before it that had no answer. */
  forceRelease(name: string, expected?: bigint): Promise<boolean> {
    const wish = `${expected ?? ''} ${name}`;
    return this.#desk.ask('force the release of', name, async (session, until) => {
      this.#forgetEnded();
      if (await this.#hasStruck(wish, session, until)) return true;
      await session.heartbeat(until);
      const parent = this.#places.parentOf(name);
      for (;;) {
        const [head] = inOrder(await this.#places.list(parent, session, until));
        if (head === undefined) return false;
        const path = `${parent}/${head.node}`;
        const stat = await session.stat(path, until);
        if (stat === undefined) continue;
        // A sequence is never used again under its parent, so that this path is this grant, and deleting it is exact.
        if (expected !== undefined && stat.czxid !== expected) return false;
        if (await this.#strike(wish, path, session, until)) return true;
      }
    });
  }

  async #strike(wish: string, path: string, session: Session, until: number): Promise<boolean> {
    const blow = { session, mark: session.freshPath() };
    this.#unanswered.set(wish, blow);
    try {
      const broken = await session.removeLeaving(path, blow.mark, until);
      if (broken) this.#remove(blow);
      this.#forget(wish, blow);
      return broken;
    } catch (error) {
      if (!isUnanswered(error)) this.#forget(wish, blow);
      throw error;
    }
  }

  /** A session that is ready reads whatever came of what it sent before. */
  async #hasStruck(wish: string, session: Session, until: number): Promise<boolean> {
    const blow = this.#unanswered.get(wish);
    if (blow?.session !== session) return false;
    const struck = (await session.stat(blow.mark, until)) !== undefined;
    if (struck) this.#remove(blow);
    this.#forget(wish, blow);
    return struck;
  }

  #forget(wish: string, blow: Blow): void {
    if (this.#unanswered.get(wish) === blow) this.#unanswered.delete(wish);
  }

  #remove({ mark, session }: Blow): void {
    // If that fails for good, the end of the session does it.
    session.certainly((until) => session.remove(mark, until)).catch(() => undefined);
  }

  /** What came of these nobody can know any more. */
  #forgetEnded(): void {
    for (const [wish, { session }] of this.#unanswered) if (session.ended) this.#unanswered.delete(wish);
  }
}
