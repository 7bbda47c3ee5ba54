import { BackendError, type Clock } from '@holdfast/core';
import type { ITxnRequest, ITxnResponse } from 'etcd3';
import * as transactions from './transactions.js';
import type { Answer } from './transport.js';

/** Sends a transaction now: its deadline counts from here. `what` completes "etcd could not …". */
export type Send = (what: string, transaction: ITxnRequest, timeout: number) => Promise<Answer<ITxnResponse>>;

/** What is to be sent, and who waits for its answer. */
interface Parcel {
  readonly what: string;
  readonly transaction: ITxnRequest;
  readonly timeout: number;
  readonly scope: string | undefined;
  resolve(answer: Answer<ITxnResponse> | Promise<Answer<ITxnResponse>>): void;
  reject(error: unknown): void;
}

/**
 * How many requests may be unanswered. A server answers some thousand of them in a second: what is sent beyond its reach
 * waits there, while its deadline runs and keep-alives wait behind it.
 */
const WINDOW = 128;

/** How many transactions share a request, of the 128 operations that etcd allows by default. */
const SHARING = 100;

/**
 * Sends transactions, no more at a time than the server answers soon.
 *
 * What must wait leaves together, as one transaction of transactions: ten thousand locks that are given back in the same
 * moment are a hundred requests, and a hundred writes to the server's log. While fewer than that are under way, each
 * goes alone and at once.
 */
export class Outbox {
  readonly #send: Send;
  readonly #clock: Clock;
  readonly #waiting = new Set<Parcel>();
  #underWay = 0;

  constructor(send: Send, clock: Clock) {
    this.#send = send;
    this.#clock = clock;
  }

  /**
   * @param timeout ms to wait here at most, and then for an answer
   * @param scope the lock's name, where the transaction is a small one that touches this lock's keys alone
   * @throws BackendError
   */
  send(
    what: string,
    transaction: ITxnRequest,
    timeout: number,
    scope?: string,
  ): Promise<Answer<ITxnResponse>> {
    if (this.#underWay < WINDOW) return this.#counted(this.#send(what, transaction, timeout));
    return new Promise((resolve, reject) => {
      const parcel: Parcel = {
        what,
        transaction,
        timeout,
        scope,
        resolve: (answer) => {
          timer.cancel();
          resolve(answer);
        },
        reject: (error) => {
          timer.cancel();
          reject(error);
        },
      };
      this.#waiting.add(parcel);
      const timer = this.#clock.setTimer(timeout, () => {
        if (this.#waiting.delete(parcel)) reject(crowded(what, timeout));
      });
    });
  }

  #counted<T>(answer: Promise<T>): Promise<T> {
    this.#underWay++;
    return answer.finally(() => {
      this.#underWay--;
      this.#sendMore();
    });
  }

  #sendMore(): void {
    while (this.#underWay < WINDOW) {
      const parcels = this.#next();
      const [first] = parcels;
      if (first === undefined) return;
      if (parcels.length === 1) this.#sendAlone(first);
      else this.#sendTogether(parcels);
    }
  }

  /**
   * The next to leave. Those that leave together are about different locks: the conditions of all are tried before
   * anything is done, so that two claims on one lock would both find it free.
   */
  #next(): readonly Parcel[] {
    const byScope = new Map<string, Parcel>();
    for (const parcel of this.#waiting) {
      const { scope } = parcel;
      if (scope === undefined || byScope.has(scope)) {
        if (byScope.size > 0) break;
        this.#waiting.delete(parcel);
        return [parcel];
      }
      byScope.set(scope, parcel);
      if (byScope.size === SHARING) break;
    }
    for (const parcel of byScope.values()) this.#waiting.delete(parcel);
    return [...byScope.values()];
  }

  #sendAlone({ what, transaction, timeout, resolve }: Parcel): void {
    resolve(this.#counted(this.#send(what, transaction, timeout)));
  }

  #sendTogether(parcels: readonly Parcel[]): void {
    const together = transactions.together(parcels.map(({ transaction }) => transaction));
    const timeout = Math.max(...parcels.map((parcel) => parcel.timeout));
    this.#counted(this.#send('carry out what many callers wish', together, timeout)).then(
      (answer) => {
        const values = transactions.apart(answer.value);
        for (const [index, { resolve }] of parcels.entries()) {
          const value = values[index];
          if (value !== undefined) resolve({ ...answer, value });
        }
      },
      (error: unknown) => {
        // Refused as a whole, for the sake of one of them: nothing of it was done, and each hears of its own fault.
        const refused = !(error instanceof BackendError) || !error.transient;
        for (const parcel of parcels) {
          if (refused) this.#sendAlone(parcel);
          else parcel.reject(error);
        }
      },
    );
  }
}

function crowded(what: string, timeout: number): BackendError {
  return new BackendError(
    'BACKEND_UNAVAILABLE',
    `etcd could not ${what}: ${WINDOW} earlier requests are unanswered, and this one was not sent within ${Math.round(timeout)} ms`,
  );
}
