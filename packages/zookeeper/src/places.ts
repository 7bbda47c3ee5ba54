import { type Claim, type Contended, type Grant, OwnerMap, type Timer } from '@holdfast/core';
import { isAlone, type LastHold, type NewNode } from './alone.js';
import { CODE, hasCode, isUnanswered } from './errors.js';
import { type Contender, encodeName, inOrder, isOwnedBy, nodePrefix, parseNode } from './names.js';
import type { Parents } from './parents.js';
import type { Session } from './session.js';
import { encodeData } from './stored.js';
import type { Turn } from './turn.js';

/** A claim's node. */
interface Node extends NewNode, Contender {
  readonly path: string;
}

/** A claim's place in a lock's queue: one ephemeral sequential node, in one session. */
export interface Place {
  readonly claim: Claim;
  /** The path of the lock's node, whose children are the queue. */
  readonly parent: string;
  /** The session that the node was made in, or may have been. */
  session?: Session;
  node: Node | undefined;
  /** A create is unanswered: the node may be there, under our owner's name. */
  unsure: boolean;
  /** At the head: the lock is ours. */
  granted: boolean;
  /** Of a held node: `watched` says that we shall hear when somebody deletes it. */
  presence: 'unknown' | 'watched' | 'gone';
  /** While waiting for the node ahead to go. */
  turn: Turn | undefined;
  /** Under way: the next to ask for the same shares it, and clean-up must not overtake it. */
  attempt?: Promise<Grant | Contended> | undefined;
  leaving?: Promise<boolean>;
  mark?: Timer | undefined;
}

/** The places of this process's claims, and the nodes behind them. */
export class Places {
  /** The node whose children are the locks. */
  readonly home: string;
  readonly #parents: Parents;
  readonly #byOwner = new OwnerMap<Place>();

  constructor(home: string, parents: Parents) {
    this.home = home;
    this.#parents = parents;
  }

  of(owner: string): Place | undefined {
    return this.#byOwner.get(owner);
  }

  /** The claim's, a new one if it has none. */
  enrol(claim: Claim): Place {
    const present = this.#byOwner.get(claim.owner);
    if (present !== undefined) return present;
    const parent = this.parentOf(claim.name);
    const place: Place = {
      claim,
      parent,
      node: undefined,
      unsure: false,
      granted: false,
      presence: 'unknown',
      turn: undefined,
    };
    this.#byOwner.set(claim.owner, place);
    return place;
  }

  /** Where the grant is still ours, as far as is known here. */
  held({ claim, fencingToken }: Grant): Place | undefined {
    const place = this.#byOwner.get(claim.owner);
    return place?.granted === true && place.node?.czxid === fencingToken ? place : undefined;
  }

  in(session: Session): readonly Place[] {
    return this.#byOwner.values().filter((place) => place.session === session);
  }

  /** @returns false if that was done before */
  drop(place: Place): boolean {
    return this.#byOwner.get(place.claim.owner) === place && this.#byOwner.delete(place.claim.owner);
  }

  clear(): void {
    this.#byOwner.clear();
  }

  parentOf(name: string): string {
    return `${this.home}/${encodeName(name)}`;
  }

  /** A lock's children. */
  async list(parent: string, session: Session, until: number): Promise<readonly string[]> {
    return (await session.children(parent, until)) ?? [];
  }

  /** Sees to it that the claim has a node, and answers the queue. */
  async join(place: Place, session: Session, until: number): Promise<readonly Contender[]> {
    if (place.session !== session) this.forgetNode(place);
    place.session = session;
    if (place.node !== undefined) return inOrder(await this.list(place.parent, session, until));
    if (place.unsure) {
      const children = await this.list(place.parent, session, until);
      if (await this.find(place, children, session, until)) return inOrder(children);
    }
    for (;;) {
      const queue = await this.#create(place, session, until);
      if (queue !== undefined) return queue;
      await session.makePath(place.parent, until);
    }
  }

  /**
   * Sends the create and the listing together, after that of the parent where it may be missing. The listing comes later
   * where it will probably not be needed, as when nobody but this process uses the lock.
   *
   * @returns undefined when the parent was missing
   */
  async #create(place: Place, session: Session, until: number): Promise<readonly Contender[] | undefined> {
    const { claim, parent } = place;
    place.unsure = true;
    // If that fails, so does the create.
    if (!this.#parents.has(parent)) session.make(parent, until).catch(() => undefined);
    const creating = session.createInLine(
      `${parent}/${nodePrefix(claim.owner)}`,
      encodeData(claim, session),
      until,
    );
    const last = this.#parents.lastHold(parent);
    const expected = last !== undefined && this.#parents.probablyAlone(parent);
    const listing = expected ? undefined : session.children(parent, until);
    // Of interest only once the create has succeeded.
    listing?.catch(() => undefined);
    try {
      const { path, czxid } = await creating;
      const node = this.#own(place, path, czxid);
      const alone = last !== undefined && isAlone(session, node, last);
      if (last !== undefined) this.#parents.learn(parent, alone);
      if (alone) return [node];
    } catch (error) {
      // An answer, whichever, says that there is no node.
      if (!isUnanswered(error)) place.unsure = false;
      if (hasCode(error, CODE.noNode)) return undefined;
      throw error;
    }
    return inOrder((await (listing ?? session.children(parent, until))) ?? []);
  }

  /** Looks for the node of a create whose answer was lost. One of an earlier session, with the same owner, is not ours. */
  async find(place: Place, children: readonly string[], session: Session, until: number): Promise<boolean> {
    for (const contender of inOrder(children)) {
      if (!isOwnedBy(place.claim.owner, contender)) continue;
      const path = `${place.parent}/${contender.node}`;
      const stat = await session.stat(path, until);
      if (stat?.session !== session.id) continue;
      this.#own(place, path, stat.czxid);
      return true;
    }
    place.unsure = false;
    return false;
  }

  #own(place: Place, path: string, czxid: bigint): Node {
    const node = path.slice(place.parent.length + 1);
    const own = { node, sequence: parseNode(node)?.sequence ?? -1, path, czxid };
    place.unsure = false;
    place.node = own;
    this.#parents.enter(place.parent);
    return own;
  }

  /** @param removedBy the transaction that removed it, where that is known */
  forgetNode(place: Place, removedBy?: bigint): void {
    if (place.node !== undefined) this.#parents.leave(place.parent, lastHold(place, removedBy));
    place.node = undefined;
    place.unsure = false;
    place.granted = false;
    place.presence = 'unknown';
  }
}

function lastHold({ granted, node, session }: Place, removedBy: bigint | undefined): LastHold | undefined {
  if (!granted || removedBy === undefined || node === undefined || session === undefined) return undefined;
  return { session, sequence: node.sequence, removedBy };
}
