/** Remembers so many names, those that were used last. */
export class Recent {
  readonly #most: number;
  readonly #names = new Set<string>();

  constructor(most: number) {
    this.#most = most;
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  add(name: string): void {
    this.#names.delete(name);
    this.#names.add(name);
    if (this.#names.size <= this.#most) return;
    for (const oldest of this.#names) {
      this.#names.delete(oldest);
      return;
    }
  }
}
