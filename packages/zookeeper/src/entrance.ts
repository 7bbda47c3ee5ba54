/** Lets so many in at a time, in the order in which they came; the others wait outside. */
export class Entrance {
  readonly #limit: number;
  readonly #waiting: (() => void)[] = [];
  #inside = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  async pass<T>(work: () => Promise<T>): Promise<T> {
    if (this.#inside < this.#limit) this.#inside++;
    // Who leaves hands the place on.
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#inside--;
      else next();
    }
  }
}
