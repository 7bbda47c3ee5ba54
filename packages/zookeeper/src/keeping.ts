import type { Grant, Renewal } from '@holdfast/core';
import type { Desk } from './desk.js';
import type { Place, Places } from './places.js';
import type { Session } from './session.js';

/** What happens to a grant until it is given back: its session lives, or does not; somebody takes its node away. */
export class Keeping {
  readonly #desk: Desk;
  readonly #places: Places;

  constructor(desk: Desk, places: Places) {
    this.#desk = desk;
    this.#places = places;
  }

  async renew(grants: readonly Grant[]): Promise<readonly Renewal[]> {
    return await this.#desk.ask('renew', undefined, async (session, until) => {
      await session.fresh(until);
      // That the session lives is known here. Whether a node was deleted by force is asked once for each connection;
      // where thousands of requests are under way, the answer may come after this one, and is told then.
      const looks = grants.map((grant) => this.#watchOwn(this.#places.held(grant), session, until));
      await this.#desk.atMost(session.timeout / 20, Promise.all(looks));
      return grants.map((grant) => this.#renewal(grant, session));
    });
  }

  async extend(grant: Grant, ttl: number): Promise<Renewal> {
    return await this.#desk.ask('extend', grant.claim.name, async (session, until) =>
      (await this.#confirm(grant, session, until))
        ? { renewed: true, ...validity(ttl, session) }
        : { renewed: false },
    );
  }

  async verify(grant: Grant): Promise<boolean> {
    return await this.#desk.ask('verify', grant.claim.name, (session, until) =>
      this.#confirm(grant, session, until),
    );
  }

  #renewal(grant: Grant, session: Session): Renewal {
    const place = this.#places.held(grant);
    if (place === undefined || place.presence === 'gone') return { renewed: false };
    if (place.session !== session) return { renewed: false, reason: 'session' };
    return { renewed: true, ...validity(grant.ttl, session) };
  }

  /** Watches a held node, unless it is watched: never rejects. */
  async #watchOwn(place: Place | undefined, session: Session, until: number): Promise<void> {
    const node = place?.node;
    if (place === undefined || node === undefined || place.presence !== 'unknown') return;
    const gone = (): void => {
      place.presence = 'unknown';
      if (session.ready && place.node === node && place.leaving === undefined)
        void this.#gone(place, session);
    };
    // Set before the answer, since the event may come right behind it.
    place.presence = 'watched';
    try {
      const stat = await session.watch(node.path, until, gone);
      // Unless it was given back meanwhile.
      if (stat === undefined && place.node === node) await this.#gone(place, session);
    } catch {
      place.presence = 'unknown';
    }
  }

  /** A held node was deleted: by force, or with its session, of which the heartbeat tells. */
  async #gone(place: Place, session: Session): Promise<void> {
    place.presence = 'gone';
    try {
      await session.heartbeat(this.#desk.deadline());
    } catch {
      return;
    }
    if (place.leaving === undefined) this.#desk.host.lost(place.claim.owner, 'superseded');
  }

  /** A write, and a read behind it: a read alone may be answered by a server that is cut off. */
  async #confirm(grant: Grant, session: Session, until: number): Promise<boolean> {
    const place = this.#places.held(grant);
    if (place?.node === undefined || place.session !== session) return false;
    const [, stat] = await Promise.all([session.heartbeat(until), session.stat(place.node.path, until)]);
    return stat?.czxid === grant.fencingToken;
  }
}

/** The session's life is the grant's, whatever the claim's ttl says. */
export function validity(ttl: number, session: Session): { ttl: number; validFor: number; from: number } {
  return { ttl: Math.max(ttl, session.timeout), validFor: session.timeout, from: session.validFrom };
}
