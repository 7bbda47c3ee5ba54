import { type LockHandle, StaleTokenError, systemClock } from '@holdfast/core';
import type { IRequestOp, IResponseOp } from 'etcd3';
import type { EtcdClient } from './client.js';
import { handedIn } from './endpoint.js';
import { Keyspace } from './keys.js';
import { checkPrefix } from './options.js';
import { claimsIn, findToken, onlyWhile } from './transactions.js';
import { Transport } from './transport.js';

/** What to do: one of etcd3's builders (`client.put(key).value(value)`, `client.delete().key(key)`), or a plain operation. */
export type Operation = IRequestOp | { op(): Promise<IRequestOp> };

/** Where the lock of a {@link fencedTransaction} lives. */
export interface FencedTransactionOptions {
  /** The prefix of the locks. Default `holdfast`. */
  readonly prefix?: string;
  /** The `fenceOffset` of the locks. Default 0. */
  readonly fenceOffset?: bigint;
  /** How long it may take, ms. Default 5 s. */
  readonly timeout?: number;
}

/**
 * A transaction that commits only while the lock's key is the holder's: the half of a lock that the resource itself must
 * do, where the resource is in the same etcd. It asks the lock itself, so there is no token to remember.
 *
 * ```ts
 * await lock.run(async (hold) => {
 *   await fencedTransaction(client, hold, [client.put('report').value('42'), client.delete().key('draft')]);
 * });
 * ```
 *
 * @param client the application's own client of etcd3, on the cluster of the locks
 * @param hold the handle, or what is known of it
 * @returns etcd's answers to the operations, in their order
 * @throws StaleTokenError when the lock is no longer the holder's: nothing was done
 * @throws BackendError when there was no answer: whether it was done is not known
 */
export async function fencedTransaction(
  client: EtcdClient,
  hold: Pick<LockHandle, 'name' | 'owner' | 'fencingToken'>,
  operations: readonly Operation[],
  options: FencedTransactionOptions = {},
): Promise<readonly IResponseOp[]> {
  const { prefix = 'holdfast', fenceOffset = 0n, timeout = 5_000 } = options;
  checkPrefix(prefix);
  const transport = new Transport(handedIn(client), { clock: systemClock, commandTimeout: timeout });
  const range = new Keyspace(prefix).claims(hold.name);
  const token = hold.fencingToken - fenceOffset;
  const work = await Promise.all(operations.map((each) => ('op' in each ? each.op() : each)));
  for (;;) {
    const look = await transport.call('read a lock', (rpc, call) => rpc.txn(findToken(range, token), call));
    const [[ours] = [], [oldest] = []] = claimsIn(look.value);
    if (ours?.state !== 'held' || ours.owner !== hold.owner) {
      const newer = oldest?.state === 'held' && oldest.token > token ? oldest.token + fenceOffset : undefined;
      throw new StaleTokenError(`lock ${hold.name}`, hold.fencingToken, newer);
    }
    const answer = await transport.call('commit a fenced transaction', (rpc, call) =>
      rpc.txn(onlyWhile(ours, work), call),
    );
    // The key may have moved to another lease in between, and still be ours.
    if (answer.value.succeeded) return answer.value.responses;
  }
}
