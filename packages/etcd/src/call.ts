import type { InterceptingCall, Interceptor } from '@grpc/grpc-js';
import type { Clock } from '@holdfast/core';
import type { CallOptions } from './client.js';

/** gRPC's name for it is not exported. */
type RunningCall = ReturnType<Parameters<Interceptor>[1]>;

/** gRPC's DEADLINE_EXCEEDED: etcd3 then makes a new connection to the host, since the old one may be half dead. */
const DEADLINE_EXCEEDED = 4;

/**
 * A call that can be taken back, and that a member without a leader refuses at once: it would keep us waiting for
 * several seconds otherwise. etcd3 1.1.2 sends no `hasleader` and offers no cancellation; an interceptor has both.
 */
export class Call {
  #running: RunningCall | undefined;
  #cancelled = false;

  readonly options: CallOptions = {
    interceptors: [(options, next) => this.#intercept(next(options))],
  };

  cancel(): void {
    this.#cancelled = true;
    this.#running?.cancelWithStatus(DEADLINE_EXCEEDED, 'given up');
  }

  /** A wrapper of gRPC's own would cost a twentieth of an uncontended acquisition: the call's start is replaced. */
  #intercept(call: RunningCall): InterceptingCall {
    const start = call.start.bind(call);
    call.start = (metadata, listener) => {
      metadata.set('hasleader', 'true');
      this.#running = call;
      start(metadata, listener);
      // A client that was handed in may send again by itself what we have given up.
      if (this.#cancelled) call.cancelWithStatus(DEADLINE_EXCEEDED, 'given up');
    };
    return call as InterceptingCall;
  }
}

/** Options for a call that ends after `timeout` ms, for those that a client makes by itself. */
export function endingAfter(clock: Clock, timeout: number): CallOptions {
  const call = new Call();
  // It is not worth telling when the call ends sooner: cancelling what has ended does nothing.
  clock.setTimer(timeout, () => call.cancel());
  return call.options;
}
