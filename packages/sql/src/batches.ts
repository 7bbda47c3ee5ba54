/** One batch carries no more than this. */
const MOST = 500;

/** As many batches are under way at once, no more: what comes meanwhile goes together with the next. */
const LANES = 2;

/** Sends what is asked at once together: the first goes alone, without waiting for others. */
export class Batches<T, R> {
  readonly #send: (items: readonly T[]) => Promise<readonly R[]>;
  #waiting: { readonly item: T; readonly settle: (batch: Promise<readonly R[]>, index: number) => void }[] =
    [];
  #underWay = 0;

  /** @param send answers each item in its place; rejects for all of them */
  constructor(send: (items: readonly T[]) => Promise<readonly R[]>) {
    this.#send = send;
  }

  add(item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      const settle = (batch: Promise<readonly R[]>, index: number): void => {
        batch.then((answers) => resolve(answers[index] as R), reject);
      };
      this.#waiting.push({ item, settle });
      this.#next();
    });
  }

  #next(): void {
    if (this.#underWay >= LANES || this.#waiting.length === 0) return;
    const batch = this.#waiting.slice(0, MOST);
    this.#waiting = this.#waiting.slice(MOST);
    this.#underWay += 1;
    const answers = this.#send(batch.map(({ item }) => item));
    for (const [index, { settle }] of batch.entries()) settle(answers, index);
    const done = (): void => {
      this.#underWay -= 1;
      this.#next();
    };
    answers.then(done, done);
  }
}
