import type { Clock, Timer } from '@holdfast/core';
import type { ITxnRequest, ITxnResponse } from 'etcd3';
import type { StoredClaim } from './stored.js';
import * as transactions from './transactions.js';

/** A key as a waiter knows it: another claim under the same key has another token. */
export interface Sighting {
  readonly key: Buffer;
  readonly token: bigint;
}

/** Looks that are asked for within this time of one another share requests, ms. */
const GATHER = 20;

interface Look {
  readonly wanted: readonly Sighting[];
  resolve(found: Found): void;
  reject(error: unknown): void;
}

/** What a look found. */
export interface Found {
  /** Every one of the keys is there, as the claim that it was. */
  readonly unchanged: boolean;
  /** A revision of the store at which that was so. */
  readonly revision: bigint;
}

/**
 * Looks whether keys are still there, for many waiters at once.
 *
 * Each waiter looks now and then in case an event was lost. Those of one process look at the same moments, and so
 * together: a thousand waiters on one lock are ten requests every few seconds, not a thousand.
 */
export class Lookout {
  readonly #read: (transaction: ITxnRequest) => Promise<ITxnResponse>;
  readonly #clock: Clock;
  /** Processes must not look all at once. */
  readonly #offset = Math.random();
  #looks: Look[] = [];
  #timer: Timer | undefined;

  constructor(read: (transaction: ITxnRequest) => Promise<ITxnResponse>, clock: Clock) {
    this.#read = read;
    this.#clock = clock;
  }

  /** ms until the next moment at which all look who do so once in `period` ms: half to one and a half of it. */
  pauseBefore(period: number): number {
    const passed = (this.#clock.now() + this.#offset * period) % period;
    const left = period - passed;
    return left < period / 2 ? left + period : left;
  }

  /** Rejects as a request does. */
  look(wanted: readonly Sighting[]): Promise<Found> {
    this.#timer ??= this.#clock.setTimer(GATHER, () => this.#lookAtAll());
    return new Promise((resolve, reject) => {
      this.#looks.push({ wanted, resolve, reject });
    });
  }

  /** Whoever waits for an answer is told that there is none. */
  close(): void {
    this.#timer?.cancel();
    const looks = this.#looks;
    this.#looks = [];
    for (const { reject } of looks) reject(new Error('closed'));
  }

  #lookAtAll(): void {
    const looks = this.#looks;
    this.#looks = [];
    this.#timer = undefined;
    for (const batch of batchesOf(looks)) this.#lookAt(batch);
  }

  #lookAt({ looks, keys }: Batch): void {
    this.#read(transactions.read([...keys.values()])).then(
      (answer) => {
        const revision = transactions.revisionOf(answer);
        const claims = transactions.claimsIn(answer);
        const found = new Map<string, StoredClaim | undefined>();
        for (const [index, id] of [...keys.keys()].entries()) found.set(id, claims[index]?.[0]);
        for (const { wanted, resolve } of looks) {
          const unchanged = wanted.every(({ key, token }) => found.get(idOf(key))?.token === token);
          resolve({ unchanged, revision });
        }
      },
      (error: unknown) => {
        for (const { reject } of looks) reject(error);
      },
    );
  }
}

interface Batch {
  readonly looks: Look[];
  readonly keys: Map<string, Buffer>;
}

/** Looks that share one read, which has room for so many keys. Neighbours in a queue look at the same ones. */
function batchesOf(looks: readonly Look[]): readonly Batch[] {
  const batches: Batch[] = [];
  let batch: Batch | undefined;
  for (const look of looks) {
    if (batch === undefined || batch.keys.size + look.wanted.length > transactions.READ_LIMIT) {
      batch = { looks: [], keys: new Map() };
      batches.push(batch);
    }
    batch.looks.push(look);
    for (const { key } of look.wanted) batch.keys.set(idOf(key), key);
  }
  return batches;
}

function idOf(key: Buffer): string {
  return key.toString('latin1');
}
