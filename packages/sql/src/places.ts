/** Which owners of this instance have, or may have, a place in a queue. */
export class Places {
  readonly #names = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  has(owner: string): boolean {
    return this.#names.has(owner);
  }

  /** Somebody of this instance waits for the name: whoever comes now is most likely refused. */
  crowded(name: string): boolean {
    return this.#counts.has(name);
  }

  add(owner: string, name: string): void {
    if (this.#names.has(owner)) return;
    this.#names.set(owner, name);
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  delete(owner: string): void {
    const name = this.#names.get(owner);
    if (name === undefined) return;
    this.#names.delete(owner);
    const left = (this.#counts.get(name) ?? 0) - 1;
    if (left > 0) this.#counts.set(name, left);
    else this.#counts.delete(name);
  }
}
