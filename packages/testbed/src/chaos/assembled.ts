import type { RunningTarget } from './target.js';

/** Notes a part that must be stopped with the whole, and hands it back. */
export type Own = <T extends AsyncDisposable>(part: T) => T;

/**
 * A target that is put together from parts: servers, proxies. `stop` ends them, the last one first. When one of the steps
 * fails, those that were started are ended before its error is told: a server that nobody stops would keep the runner
 * waiting for ever.
 */
export async function assembled<R extends object>(
  build: (own: Own) => Promise<R>,
): Promise<R & Pick<RunningTarget, 'stop'>> {
  const parts: AsyncDisposable[] = [];
  const stop = (): Promise<void> => endAll(parts.splice(0).reverse());
  try {
    const built = await build((part) => {
      parts.push(part);
      return part;
    });
    return { ...built, stop };
  } catch (error) {
    await stop().catch((another: unknown) => {
      throw new AggregateError([error, another], 'a target could not be started, nor stopped again');
    });
    throw error;
  }
}

/** All of them, or none: when one fails, those that came about are ended before its error is told. */
export async function allOrNone<T extends AsyncDisposable>(starting: readonly Promise<T>[]): Promise<T[]> {
  const outcomes = await Promise.allSettled(starting);
  const started = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed === undefined) return started;
  await endAll(started);
  throw failed.reason;
}

/** One after the other; the first failure is told once each has had its turn. */
async function endAll(parts: readonly AsyncDisposable[]): Promise<void> {
  const failures: unknown[] = [];
  for (const part of parts) {
    try {
      await part[Symbol.asyncDispose]();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
