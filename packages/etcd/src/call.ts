import { InterceptingCall, type Interceptor } from '@grpc/grpc-js';
import type { Clock } from '@holdfast/core';
import type { CallOptions } from './client.js';

/** gRPC's DEADLINE_EXCEEDED: etcd3 then makes a new connection to the host, since the old one may be half dead. */
const DEADLINE_EXCEEDED = 4;

/** gRPC's name for it is not exported. */
type RunningCall = ReturnType<Parameters<Interceptor>[1]>;

/**
 * A call that can be taken back, and that a member without a leader refuses at once: it would keep us waiting for
 * several seconds otherwise. etcd3 1.1.2 sends no `hasleader` and offers no cancellation; an interceptor has both.
 */
export class Call {
  readonly #running = new Set<RunningCall>();
  #cancelled = false;
  #ended: (() => void) | undefined;

  readonly options: CallOptions = { interceptors: [this.#interceptor()] };

  /** @param ended called whenever the call ends, however it does */
  constructor(ended?: () => void) {
    this.#ended = ended;
  }

  cancel(): void {
    this.#cancelled = true;
    for (const call of this.#running) call.cancelWithStatus(DEADLINE_EXCEEDED, 'given up');
  }

  #interceptor(): Interceptor {
    return (options, next) => {
      const call = next(options);
      return new InterceptingCall(call, {
        start: (metadata, _listener, start) => {
          metadata.set('hasleader', 'true');
          this.#running.add(call);
          start(metadata, {
            onReceiveStatus: (status, forward) => {
              this.#running.delete(call);
              this.#ended?.();
              forward(status);
            },
          });
          // A client that was handed in may send again by itself what we have given up.
          if (this.#cancelled) call.cancelWithStatus(DEADLINE_EXCEEDED, 'given up');
        },
      });
    };
  }
}

/** Options for a call that ends after `timeout` ms, for those that a client makes by itself. */
export function endingAfter(clock: Clock, timeout: number): CallOptions {
  const call = new Call(() => timer.cancel());
  const timer = clock.setTimer(timeout, () => call.cancel());
  return call.options;
}
