import type { LockState } from '@holdfast/core';
import type { Desk } from './desk.js';
import { decodeName, inOrder, ownerOf } from './names.js';
import type { Places } from './places.js';
import type { Session } from './session.js';
import { decodeData } from './stored.js';

/** How many locks `list` looks at together. */
const BATCH = 100;

/** What there is at the server, for people. */
export class Looking {
  readonly #desk: Desk;
  readonly #places: Places;

  constructor(desk: Desk, places: Places) {
    this.#desk = desk;
    this.#places = places;
  }

  async inspect(name: string): Promise<LockState> {
    return await this.#desk.ask('inspect', name, async (session, until) => {
      // A write first: a lagging server's answer then is no older than this call.
      await session.heartbeat(until);
      return await this.#inspect(name, session, until);
    });
  }

  async *list(prefix: string): AsyncIterable<LockState> {
    const names = await this.#desk.ask('list locks', undefined, async (session, until) => {
      await session.heartbeat(until);
      return (await this.#places.list(this.#places.home, session, until)).map(decodeName);
    });
    const wanted = names.filter((name) => name?.startsWith(prefix) === true);
    for (let start = 0; start < wanted.length; start += BATCH) {
      const batch = wanted.slice(start, start + BATCH);
      const states = await this.#desk.ask('list locks', undefined, (session, until) =>
        Promise.all(batch.map((name) => this.#inspect(name ?? '', session, until))),
      );
      yield* states.filter(({ held }) => held);
    }
  }

  async #inspect(name: string, session: Session, until: number): Promise<LockState> {
    const parent = this.#places.parentOf(name);
    for (;;) {
      const [head, ...others] = inOrder(await this.#places.list(parent, session, until));
      if (head === undefined) return { name, held: false, waiters: [] };
      const node = await session.read(`${parent}/${head.node}`, until);
      if (node === undefined) continue;
      const { tail, metadata, session: timeout } = decodeData(node.data);
      const waiters = others.map((waiter, index) => ({ owner: ownerOf(waiter), position: index + 1 }));
      if (tail === true) return { name, held: true, waiters };
      return {
        name,
        held: true,
        owner: ownerOf(head),
        fencingToken: node.stat.czxid,
        acquiredAt: new Date(node.stat.modifiedAt),
        ...(timeout === undefined ? {} : { expiresIn: timeout }),
        ...(metadata === undefined ? {} : { metadata }),
        waiters,
      };
    }
  }
}
