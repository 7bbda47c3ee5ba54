import type { Claim } from '@holdfast/core';
import type { Desk } from './desk.js';
import { toBackendError } from './errors.js';
import type { Place, Places } from './places.js';
import type { Session } from './session.js';
import { TAIL } from './stored.js';

/** How long the outcome of a release whose caller has gone is kept for the next one. */
const REMEMBERED = 60_000;

/** The ways in which a claim is given back: at once, or with a tail. */
export class Leaving {
  readonly #desk: Desk;
  readonly #places: Places;

  constructor(desk: Desk, places: Places) {
    this.#desk = desk;
    this.#places = places;
  }

  async release(claim: Claim, keepFor: number): Promise<boolean> {
    const place = this.#places.of(claim.owner);
    if (place === undefined) return false;
    place.leaving ??= this.#leave(place, keepFor);
    try {
      const removed = await this.#desk.within(place.leaving, this.#desk.deadline());
      // Of several calls, one is told so.
      return this.#places.drop(place) && removed;
    } catch (error) {
      this.#forgetLater(place);
      throw toBackendError(error, 'release', claim.name);
    }
  }

  async #leave(place: Place, keepFor: number): Promise<boolean> {
    place.mark?.cancel();
    place.turn?.cancel();
    await place.attempt?.catch(() => undefined);
    const { session } = place;
    if (session === undefined) return false;
    return keepFor > 0 ? this.#becomeTail(place, session, keepFor) : this.deleteCertainly(place, session);
  }

  /**
   * Deletes the claim's node, in the background if the connection is away, until its session ends.
   *
   * @returns true if that ended a hold
   */
  async deleteCertainly(place: Place, session: Session): Promise<boolean> {
    let asked = false;
    let removedBy: bigint | undefined;
    const deleted = await session.certainly(async (until) => {
      if (place.unsure) {
        const children = await this.#places.list(place.parent, session, until);
        await this.#places.find(place, children, session, until);
      }
      if (place.node === undefined) return false;
      const again = asked;
      asked = true;
      removedBy = await session.remove(place.node.path, until);
      // Gone, after a request whose answer was lost: that was it.
      return (removedBy !== undefined || again) && place.granted;
    });
    this.#places.forgetNode(place, removedBy);
    return deleted === true;
  }

  /** Keeps the node, as nobody's, for so long or until the session ends. */
  async #becomeTail(place: Place, session: Session, keepFor: number): Promise<boolean> {
    const { node } = place;
    if (node === undefined) return false;
    const kept = await session.certainly((until) => session.write(node.path, TAIL, until));
    if (kept !== true) return false;
    this.#desk.later(keepFor, () => {
      this.deleteCertainly(place, session).catch((error) =>
        this.#desk.host.report(toBackendError(error, 'end the minHold of', place.claim.name)),
      );
    });
    return true;
  }

  /** A release goes on after its caller was told "unknown": its outcome is kept for the caller's next try. */
  #forgetLater(place: Place): void {
    const forget = (): void => void this.#desk.later(REMEMBERED, () => this.#places.drop(place));
    place.leaving?.then(forget, forget);
  }
}
