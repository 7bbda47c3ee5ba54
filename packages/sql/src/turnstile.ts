/** Lets only so many in at once. The others wait in the order in which they came, the urgent before the rest. */
export class Turnstile {
  #free: number;
  readonly #urgent: (() => void)[] = [];
  readonly #rest: (() => void)[] = [];

  constructor(most: number) {
    this.#free = most;
  }

  /** Resolves when there is room. Whoever came in must {@link leave}. */
  async enter(urgent: boolean): Promise<void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => (urgent ? this.#urgent : this.#rest).push(resolve));
  }

  leave(): void {
    const next = this.#urgent.shift() ?? this.#rest.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
