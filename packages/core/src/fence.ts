import { InvalidArgumentError, StaleTokenError } from './errors.js';

/** Where a guarded resource keeps one number: the newest fencing token that it has seen. */
export interface FenceStore {
  /** The resource's name, for errors. */
  readonly resource?: string;
  /** The newest token seen; undefined before the first. */
  read(): bigint | undefined | Promise<bigint | undefined>;
  /**
   * Stores the token, only if the number is still `previous`: that is what makes the guard hold between processes.
   *
   * @returns false when the number has changed since; then the guard reads again
   */
  write(token: bigint, previous: bigint | undefined): boolean | Promise<boolean>;
}

/** Refuses the writes of holders that have been overtaken. */
export interface FenceGuard {
  /**
   * Passes a token that is as new as any seen, and remembers it. Call it in the same step as the write that it guards:
   * between a check and a later write a newer holder can come.
   *
   * @throws StaleTokenError when a newer token was seen
   */
  check(token: bigint): Promise<void>;
  /** Checks the token, then runs the work, one piece at a time within this process. */
  run<T>(token: bigint, work: () => T | Promise<T>): Promise<T>;
}

/**
 * Guards any resource that can keep one number.
 *
 * A lock alone cannot stop a holder that was paused past its ttl: it wakes up and writes. The resource can, by refusing
 * a token older than one that it has seen (M. Kleppmann, "How to do distributed locking", 2016).
 */
export function createFenceGuard(store: FenceStore): FenceGuard {
  const resource = store.resource ?? 'the guarded resource';
  let last: Promise<unknown> = Promise.resolve();

  const advance = async (token: bigint): Promise<void> => {
    for (;;) {
      const newest = await store.read();
      if (newest !== undefined && token < newest) throw new StaleTokenError(resource, token, newest);
      if (newest === token || (await store.write(token, newest))) return;
    }
  };

  const inTurn = <T>(step: () => Promise<T>): Promise<T> => {
    const turn = last.then(step);
    last = turn.catch(() => undefined);
    return turn;
  };

  const assertToken = (token: unknown): void => {
    if (typeof token !== 'bigint')
      throw new InvalidArgumentError('token', token, 'a bigint: the fencingToken of a hold');
  };

  return {
    async check(token) {
      assertToken(token);
      await inTurn(() => advance(token));
    },
    async run(token, work) {
      assertToken(token);
      return inTurn(async () => {
        await advance(token);
        return work();
      });
    },
  };
}
