import type { Deadlines } from '@holdfast/core';

/**
 * The promise's outcome, or a rejection after `ms`. Every statement goes through here, so it makes no more promises and
 * timers than it must.
 *
 * @param late what to reject with then
 */
export function within<T>(
  deadlines: Deadlines,
  ms: number,
  promise: Promise<T>,
  late: () => Error,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const deadline = deadlines.set(Math.max(0, ms), () => reject(late()));
    // When it comes too late, nobody hears of its failure.
    promise.then(
      (value) => {
        deadlines.lift(deadline);
        resolve(value);
      },
      (error: unknown) => {
        deadlines.lift(deadline);
        reject(error);
      },
    );
  });
}
