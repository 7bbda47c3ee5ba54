import type { BackendHost, Clock } from '@holdfast/core';
import { Call } from './call.js';
import type { Endpoint } from './endpoint.js';
import { failureOf, toBackendError, UnansweredError } from './errors.js';
import type { Rpc, WatchStream } from './rpc.js';

/** The answer to a request. */
export interface Answer<T> {
  readonly value: T;
  /** When the answered try was sent, on the monotonic clock. */
  readonly sentAt: number;
  /** Earlier tries went unanswered: they may still arrive, and be applied, at any later time. */
  readonly strays: boolean;
}

/** How a request is sent to a member. */
export type Send<T> = (rpc: Rpc, call: Call) => Promise<T>;

/** The share of its time after which a request is sent again through another endpoint, if its own is silent. */
const PATIENCE = 0.5;
/** How long an endpoint that failed comes last, ms. */
const SUSPICION = 5_000;
/** Our time runs out before core's: its errors say less. */
const HASTE = 0.95;

/**
 * Requests with a deadline, through whichever endpoint answers.
 *
 * etcd3 1.1.2 gives its calls no deadline, retries transactions blindly and picks a host at random, dead or alive. Here
 * each member is an endpoint; one that failed comes last for a while. gRPC's own deadlines are times of the wall clock:
 * ours are timers of the clock that core lends us.
 */
export class Transport {
  readonly #endpoints: readonly Endpoint[];
  readonly #clock: Clock;
  /** ms for a request, unless its caller says otherwise. */
  readonly timeout: number;
  readonly #suspectUntil = new Map<Endpoint, number>();
  readonly #answeredAt = new Map<Endpoint, number>();
  readonly #first: number;

  constructor(endpoints: readonly Endpoint[], host: Pick<BackendHost, 'clock' | 'commandTimeout'>) {
    this.#endpoints = endpoints;
    this.#clock = host.clock;
    this.timeout = host.commandTimeout * HASTE;
    // Many clients of one list must not all prefer the same member.
    this.#first = Math.floor(Math.random() * endpoints.length);
  }

  get endpoints(): readonly Endpoint[] {
    return this.#endpoints;
  }

  /** For messages. */
  get names(): string {
    return this.#endpoints.map(({ name }) => name).join(', ');
  }

  /**
   * Sends an idempotent request, to one endpoint after the other while there is time.
   *
   * @param what completes "etcd could not …"
   * @param timeout ms for all tries together. Default the command timeout.
   * @throws BackendError; unless it refuses, the request may have been applied
   */
  async call<T>(what: string, send: Send<T>, timeout = this.timeout): Promise<Answer<T>> {
    const deadline = this.#clock.now() + timeout;
    const patience = this.#endpoints.length > 1 ? timeout * PATIENCE : timeout;
    let failure: unknown;
    for (const [index, endpoint] of this.#inOrder().entries()) {
      const sentAt = this.#clock.now();
      const left = deadline - sentAt;
      if (index > 0 && left < 1) break;
      try {
        const value = await this.#once(endpoint, send, Math.min(patience, left), left);
        this.#answeredAt.set(endpoint, this.#clock.now());
        this.#suspectUntil.delete(endpoint);
        return { value, sentAt, strays: index > 0 };
      } catch (error) {
        const kind = failureOf(error);
        if (kind !== 'away' && kind !== 'stale-auth')
          throw kind.startsWith('lease') ? error : toBackendError(what, error);
        failure = error;
        this.#suspect(endpoint);
      }
    }
    throw toBackendError(what, failure);
  }

  /** Keeps a lease alive once. The ttl in ms that it has again; 0 when the server does not know it. */
  keepAlive(id: string, timeout?: number): Promise<Answer<number>> {
    const send: Send<number> = async (rpc, call) => Math.max(0, await rpc.leaseKeepAlive(id, call)) * 1000;
    return this.call('keep a lease alive', send, Math.min(timeout ?? this.timeout, this.timeout));
  }

  /** Opens a stream of watches on the endpoint that seems best. `failed` tells the transport that it went silent. */
  async openWatch(): Promise<{ readonly stream: WatchStream; readonly failed: () => void }> {
    const [endpoint] = this.#inOrder();
    if (endpoint === undefined) throw new Error('there is no endpoint');
    const failed = (): void => {
      this.#suspect(endpoint);
      endpoint.rpc.reset();
    };
    return { stream: await endpoint.rpc.watch(new Call()), failed };
  }

  /** The same, through this endpoint alone. */
  through(endpoint: Endpoint): Transport {
    return new Transport([endpoint], { clock: this.#clock, commandTimeout: this.timeout });
  }

  close(): void {
    for (const endpoint of this.#endpoints) endpoint.close();
  }

  /**
   * @param patience ms without any answer of the endpoint's, to this or another request, after which it is given up
   * @param timeout ms after which this request is given up at the latest
   */
  #once<T>(endpoint: Endpoint, send: Send<T>, patience: number, timeout: number): Promise<T> {
    const call = new Call();
    const sentAt = this.#clock.now();
    return new Promise<T>((resolve, reject) => {
      const giveUp = (after: number): void => {
        reject(new UnansweredError(endpoint.name, after));
        call.cancel();
      };
      let timer = this.#clock.setTimer(patience, () => {
        const slow = (this.#answeredAt.get(endpoint) ?? 0) > sentAt && patience < timeout;
        if (!slow) return giveUp(patience);
        // It answers others meanwhile: asking elsewhere as well would make it slower still.
        timer = this.#clock.setTimer(timeout - patience, () => giveUp(timeout));
      });
      send(endpoint.rpc, call).then(
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

  #inOrder(): readonly Endpoint[] {
    if (this.#endpoints.length === 1) return this.#endpoints;
    const now = this.#clock.now();
    const rotated = [...this.#endpoints.slice(this.#first), ...this.#endpoints.slice(0, this.#first)];
    const suspect = (endpoint: Endpoint): number =>
      (this.#suspectUntil.get(endpoint) ?? 0) > now ? (this.#suspectUntil.get(endpoint) ?? 0) : 0;
    return rotated.sort((one, other) => suspect(one) - suspect(other));
  }

  #suspect(endpoint: Endpoint): void {
    this.#suspectUntil.set(endpoint, this.#clock.now() + SUSPICION);
  }
}
