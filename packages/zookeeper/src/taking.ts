import type { Claim, Contended, Grant } from '@holdfast/core';
import type { Desk } from './desk.js';
import { Entrance } from './entrance.js';
import { toBackendError } from './errors.js';
import { validity } from './keeping.js';
import type { Leaving } from './leaving.js';
import { type Contender, inOrder, ownerOf } from './names.js';
import type { Place, Places } from './places.js';
import type { NodeStat, Session } from './session.js';
import { encodeData } from './stored.js';
import { Turn } from './turn.js';

/** A hold that had to wait is marked with its time of acquisition if it lasts this long. */
const MARK_AFTER = 100;

/**
 * Attempts that are under way at once. Each takes several requests one after another, and the second of thousands would
 * stand behind all the firsts, past its time.
 */
const AT_ONCE = 100;

/** From a claim to a grant: joining, waiting for the node ahead to go. */
export class Taking {
  readonly #desk: Desk;
  readonly #places: Places;
  readonly #leaving: Leaving;
  readonly #entrance = new Entrance(AT_ONCE);

  constructor(desk: Desk, places: Places, leaving: Leaving) {
    this.#desk = desk;
    this.#places = places;
    this.#leaving = leaving;
  }

  async attempt(claim: Claim): Promise<Grant | Contended> {
    const place = this.#places.enrol(claim);
    place.attempt ??= this.#begin(place);
    try {
      return await this.#desk.within(place.attempt, this.#desk.deadline());
    } catch (error) {
      throw toBackendError(error, 'acquire', claim.name);
    }
  }

  /** Where thousands are asked for at once it takes longer than a caller waits, who asks again. */
  #begin(place: Place): Promise<Grant | Contended> {
    const work = this.#entrance.pass(() =>
      this.#desk.ask('acquire', place.claim.name, (session, until) => this.#attempt(place, session, until)),
    );
    const done = (): void => {
      place.attempt = undefined;
    };
    work.then(done, done);
    return work;
  }

  async awaitTurn(claim: Claim, signal: AbortSignal): Promise<void> {
    await this.#places.of(claim.owner)?.turn?.wait(signal);
  }

  async #attempt(place: Place, session: Session, until: number): Promise<Grant | Contended> {
    // Released while this waited for the session: nothing is to be sent any more.
    if (place.leaving !== undefined) return {};
    let queue = await this.#places.join(place, session, until);
    for (;;) {
      const index = queue.findIndex(({ node }) => node === place.node?.node);
      if (index === 0) {
        if (session.sound) return this.#grant(place, session);
        // A grant counts from as long ago as the session's last proof of life, and would be over at once. Given back, it
        // would cost the place.
        await session.whenSound(until);
        queue = inOrder(await this.#places.list(place.parent, session, until));
        continue;
      }
      const ahead = queue[index - 1];
      if (ahead === undefined) {
        // Somebody deleted ours: at the end again.
        this.#places.forgetNode(place);
        queue = await this.#places.join(place, session, until);
        continue;
      }
      if (!place.claim.queue) return await this.#refuse(place, session, queue, until);
      const stat = await this.#watchAhead(place, session, `${place.parent}/${ahead.node}`, until);
      if (stat !== undefined) return { ...contended(queue, index === 1 ? stat : undefined), position: index };
      queue = inOrder(await this.#places.list(place.parent, session, until));
    }
  }

  /** A refused try leaves nothing behind. */
  async #refuse(
    place: Place,
    session: Session,
    queue: readonly Contender[],
    until: number,
  ): Promise<Contended> {
    place.leaving ??= this.#leaving.deleteCertainly(place, session);
    const [head] = queue;
    // Since when it is held is worth no failure.
    const looking = session.stat(`${place.parent}/${head?.node}`, until).catch(() => undefined);
    await this.#desk.within(place.leaving, until);
    this.#places.drop(place);
    return contended(queue, await looking);
  }

  /** @returns undefined when the node ahead has gone already */
  async #watchAhead(
    place: Place,
    session: Session,
    path: string,
    until: number,
  ): Promise<NodeStat | undefined> {
    place.turn?.cancel();
    const turn = new Turn((wake) => session.unwatch(path, wake));
    place.turn = turn;
    const stat = await session.watch(path, until, turn.wake);
    if (stat === undefined) place.turn = undefined;
    return stat;
  }

  #grant(place: Place, session: Session): Grant {
    const { claim, node } = place;
    place.granted = true;
    if (place.turn !== undefined) this.#markLater(place, session);
    place.turn?.cancel();
    place.turn = undefined;
    return { claim, fencingToken: node?.czxid ?? 0n, ...validity(claim.ttl, session) };
  }

  /**
   * Writing to a node that had to wait moves its time of modification to that of the grant, for `inspect`. Short holds
   * do without.
   */
  #markLater(place: Place, session: Session): void {
    place.mark = this.#desk.later(MARK_AFTER, () => {
      const { node } = place;
      if (node === undefined || place.leaving !== undefined) return;
      // A mark that fails leaves the time of joining.
      session
        .write(node.path, encodeData(place.claim, session), this.#desk.deadline())
        .catch(() => undefined);
    });
  }
}

function contended(queue: readonly Contender[], head?: NodeStat): Contended {
  const [holder] = queue;
  if (holder === undefined) return {};
  const since = head === undefined ? {} : { since: new Date(head.modifiedAt) };
  return { holder: { owner: ownerOf(holder), ...since } };
}
