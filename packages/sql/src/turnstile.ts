/** Who goes first: the lower, the sooner. */
export type Rank = 0 | 1 | 2 | 3;

/** Lets only so many in at once. The others wait by rank, and within a rank in the order in which they came. */
export class Turnstile {
  #free: number;
  readonly #waiting: readonly (() => void)[][] = [[], [], [], []];

  constructor(most: number) {
    this.#free = most;
  }

  /** Resolves when there is room. Whoever came in must {@link leave}. */
  async enter(rank: Rank): Promise<void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting[rank]?.push(resolve));
  }

  leave(): void {
    const next = this.#waiting.find((line) => line.length > 0)?.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
