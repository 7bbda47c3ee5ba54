import type { Clock, Timer } from '@holdfast/core';

/**
 * The promise's outcome, or a rejection once the deadline has passed.
 *
 * @param deadline on the clock's `now`
 * @param late what to reject with then
 */
export async function within<T>(
  { clock, deadline }: { readonly clock: Clock; readonly deadline: number },
  promise: Promise<T>,
  late: () => Error,
): Promise<T> {
  let timer: Timer | undefined;
  const over = new Promise<never>((_resolve, reject) => {
    timer = clock.setTimer(Math.max(0, deadline - clock.now()), () => reject(late()));
  });
  try {
    return await Promise.race([promise, over]);
  } finally {
    timer?.cancel();
    // When it loses the race, nobody else hears of its failure.
    promise.catch(() => {});
  }
}
