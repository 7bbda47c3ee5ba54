/** A place in a queue that an owner has, or may have. */
export interface KnownPlace {
  readonly name: string;
  /** Its ticket, once the lock's row has been marked with it: before that, a release would not know that somebody waits. */
  ticket?: number;
}

/** Which owners of this instance have, or may have, a place in a queue. */
export class Places {
  readonly #owners = new Map<string, KnownPlace>();
  readonly #counts = new Map<string, number>();

  get(owner: string): KnownPlace | undefined {
    return this.#owners.get(owner);
  }

  has(owner: string): boolean {
    return this.#owners.has(owner);
  }

  /** Somebody of this instance waits for the name: whoever comes now is most likely refused. */
  crowded(name: string): boolean {
    return this.#counts.has(name);
  }

  add(owner: string, name: string): KnownPlace {
    const known = this.#owners.get(owner);
    if (known !== undefined) return known;
    const place = { name };
    this.#owners.set(owner, place);
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    return place;
  }

  delete(owner: string): void {
    const place = this.#owners.get(owner);
    if (place === undefined) return;
    const { name } = place;
    this.#owners.delete(owner);
    const left = (this.#counts.get(name) ?? 0) - 1;
    if (left > 0) this.#counts.set(name, left);
    else this.#counts.delete(name);
  }
}
