/** What a question to all servers has brought so far. */
export interface Tally<T> {
  /** Answers by server. */
  readonly answers: ReadonlyMap<number, T>;
  /** Failures by server. */
  readonly failures: ReadonlyMap<number, Error>;
  /** Servers that have not answered yet. */
  readonly open: number;
}

/**
 * Asks all servers at once and stops as soon as the answers so far decide: a slow minority costs nothing.
 *
 * @param decide returns the outcome once there is one; with no server left to answer it must
 */
export function poll<T, R>(
  questions: readonly Promise<T>[],
  decide: (tally: Tally<T>) => R | undefined,
): Promise<R> {
  return new Promise((resolve, reject) => {
    const answers = new Map<number, T>();
    const failures = new Map<number, Error>();
    let decided = false;
    const look = (): void => {
      if (decided) return;
      const open = questions.length - answers.size - failures.size;
      try {
        const outcome = decide({ answers, failures, open });
        if (outcome === undefined && open > 0) return;
        decided = true;
        resolve(outcome as R);
      } catch (error) {
        decided = true;
        reject(error);
      }
    };
    for (const [server, question] of questions.entries()) {
      question.then(
        (answer) => {
          answers.set(server, answer);
          look();
        },
        (error: unknown) => {
          failures.set(server, error as Error);
          look();
        },
      );
    }
  });
}

/** How many of the answers satisfy. */
export function count<T>({ answers }: Tally<T>, satisfies: (answer: T) => boolean): number {
  let found = 0;
  for (const answer of answers.values()) if (satisfies(answer)) found++;
  return found;
}
