// What the code blocks of the documentation take for granted.
import type { DistributedLock, LockHandle, Locks } from '@holdfast/core';
import type { Knex } from 'knex';

declare global {
  const locks: Locks;
  const lock: DistributedLock;
  const hold: LockHandle;
  const knex: Knex;
  const url: string;
  const order: { readonly id: number };
  function charge(what: typeof order, how: { fencingToken: bigint; signal: AbortSignal }): Promise<void>;
  function work(signal?: AbortSignal): Promise<void>;
  function write(token: bigint): Promise<void>;
  function buildReport(signal: AbortSignal): Promise<string>;
}
