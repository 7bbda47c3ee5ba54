import { type BackendHost, Deadlines, type Timer } from '@holdfast/core';
import { CODE, toBackendError, ZooKeeperError } from './errors.js';
import type { Session, Sessions } from './session.js';

/** How the parts of an open backend ask the server: on the present session, within the time that a request may take. */
export class Desk {
  readonly host: BackendHost;
  readonly sessions: Sessions;
  /** All taken back by `close`. */
  readonly #timers = new Set<Timer>();
  readonly #deadlines: Deadlines;
  #closed = false;

  constructor(host: BackendHost, sessions: Sessions) {
    this.host = host;
    this.sessions = sessions;
    this.#deadlines = new Deadlines(host.clock, { keepAlive: false });
  }

  /** Runs requests on the ready session, all within `timeout` ms. `doing` completes "ZooKeeper could not …". */
  async ask<T>(
    doing: string,
    lockName: string | undefined,
    work: (session: Session, until: number) => Promise<T>,
    timeout = this.host.commandTimeout,
  ): Promise<T> {
    const until = this.host.clock.now() + timeout;
    try {
      return await work(this.sessions.readyNow ?? (await this.sessions.ready(until)), until);
    } catch (error) {
      throw toBackendError(error, doing, lockName);
    }
  }

  /** Waits no longer than that; the work goes on, and must not reject. */
  atMost(ms: number, work: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.host.clock.setTimer(ms, resolve);
      void work.then(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  /** Waits no longer than `until`; the work goes on. */
  within<T>(work: Promise<T>, until: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const deadline = this.#deadlines.set(until - this.host.clock.now(), () => {
        const { cause } = this.sessions.present ?? {};
        reject(new ZooKeeperError(CODE.operationTimeout, undefined, { cause }));
      });
      work.then(
        (value) => {
          this.#deadlines.lift(deadline);
          resolve(value);
        },
        (error: unknown) => {
          this.#deadlines.lift(deadline);
          reject(error);
        },
      );
    });
  }

  /** @returns undefined, and nothing will happen, once closed */
  later(delay: number, callback: () => void): Timer | undefined {
    if (this.#closed) return undefined;
    const timer = this.host.clock.setTimer(delay, () => {
      this.#timers.delete(timer);
      callback();
    });
    this.#timers.add(timer);
    return {
      cancel: () => {
        this.#timers.delete(timer);
        timer.cancel();
      },
    };
  }

  /** Until when a request that is sent now may take. */
  deadline(): number {
    return this.host.clock.now() + this.host.commandTimeout;
  }

  /** No timers from here on. */
  closing(): void {
    this.#closed = true;
  }

  close(): void {
    this.#closed = true;
    this.#deadlines.stop();
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
  }
}
