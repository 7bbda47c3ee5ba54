/** Remembers something of so many names, those that were set last. */
export class Recent<T> {
  readonly #most: number;
  readonly #names = new Map<string, T>();

  constructor(most: number) {
    this.#most = most;
  }

  get(name: string): T | undefined {
    return this.#names.get(name);
  }

  set(name: string, value: T): void {
    this.#names.delete(name);
    this.#names.set(name, value);
    if (this.#names.size <= this.#most) return;
    for (const oldest of this.#names.keys()) {
      this.#names.delete(oldest);
      return;
    }
  }
}
