import type { Clock } from '@holdfast/core';

/**
 * The promise's outcome, or a rejection once the deadline has passed. Every statement goes through here, so it makes no
 * more promises than it must.
 *
 * @param deadline on the clock's `now`
 * @param late what to reject with then
 */
export function within<T>(
  { clock, deadline }: { readonly clock: Clock; readonly deadline: number },
  promise: Promise<T>,
  late: () => Error,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(Math.max(0, deadline - clock.now()), () => reject(late()));
    // When it comes too late, nobody hears of its failure.
    promise.then(
      (value) => {
        timer.cancel();
        resolve(value);
      },
      (error: unknown) => {
        timer.cancel();
        reject(error);
      },
    );
  });
}
