import { InvalidArgumentError, StaleTokenError } from '@holdfast/core';
import { toBackendError } from './errors.js';
import { fencedSet as script } from './scripts.generated.js';

/** A client of ioredis that runs scripts: a `Redis` or a `Cluster`. */
export interface ScriptClient {
  eval(script: string, keyCount: number, ...keysAndArguments: (string | Buffer)[]): Promise<unknown>;
  evalsha(sha: string, keyCount: number, ...keysAndArguments: (string | Buffer)[]): Promise<unknown>;
}

/**
 * Sets a string key, unless a holder with a newer fencing token has set it before: the half of a lock that the
 * resource itself must do, in one script. The newest token is remembered beside the value, without expiry, in the key
 * that {@link fenceKeyOf} names. Writing again with the same token is allowed.
 *
 * ```ts
 * await lock.run(async (hold) => {
 *   await fencedSet(redis, 'report:2026', JSON.stringify(report), hold.fencingToken);
 * });
 * ```
 *
 * @param client the application's own client; its `keyPrefix` applies
 * @param token from `hold.fencingToken`, never negative
 * @throws StaleTokenError when a newer token has written; BackendError when the server did not do it
 */
export async function fencedSet(
  client: ScriptClient,
  key: string,
  value: string | Buffer,
  token: bigint,
): Promise<void> {
  if (typeof token !== 'bigint' || token < 0n) {
    throw new InvalidArgumentError('token', token, 'a bigint of 0 or more, from hold.fencingToken');
  }
  const given = [key, fenceKeyOf(key), value, String(token)] as const;
  const newest = await client
    .evalsha(script.sha, 2, ...given)
    .catch((error: unknown) => {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return client.eval(script.source, 2, ...given);
    })
    .catch((error: unknown) => {
      throw toBackendError(error);
    });
  if (newest !== null) throw new StaleTokenError(key, token, BigInt(String(newest)));
}

/**
 * The key beside `key` that remembers the newest token, in the same hash slot.
 *
 * @throws InvalidArgumentError for a key with a closing brace but no hash tag: no other key shares its slot by name
 */
export function fenceKeyOf(key: string): string {
  if (/^[^{]*\{[^}]+\}/.test(key)) return `${key}:fence`;
  if (key !== '' && !key.includes('}')) return `{${key}}:fence`;
  throw new InvalidArgumentError('key', key, 'a key with a hash tag ({…}), or without a closing brace');
}
