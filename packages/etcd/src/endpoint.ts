import type { BackendHost } from '@holdfast/core';
import { noop } from 'cockatiel';
import { Etcd3 } from 'etcd3';
import { endingAfter } from './call.js';
import type { EtcdClient } from './client.js';
import type { Target } from './options.js';

/** One way to the servers: a client for a single endpoint of ours, or a client that was handed in, with all of its. */
export interface Endpoint {
  /** For messages: `host:port`. */
  readonly name: string;
  readonly client: EtcdClient;
  /** A new client in place of one whose credentials the server no longer takes, if it is ours. */
  renew(): void;
  /** Closes the client, if it is ours. */
  close(): void;
}

/** Its own retries stay in force: they are harmless, since every request of ours may be sent twice. */
export function handedIn(client: EtcdClient): Endpoint {
  return { name: 'etcd', client, renew: () => undefined, close: () => undefined };
}

/** A client of our own for a single member. */
export class OwnEndpoint implements Endpoint {
  readonly name: string;
  readonly #target: Target;
  readonly #host: BackendHost;
  #client: Etcd3;

  constructor(name: string, target: Target, host: BackendHost) {
    this.name = name;
    this.#target = target;
    this.#host = host;
    this.#client = this.#connect();
  }

  get client(): Etcd3 {
    return this.#client;
  }

  renew(): void {
    this.#client.close();
    this.#client = this.#connect();
  }

  close(): void {
    this.#client.close();
  }

  #connect(): Etcd3 {
    const { tls, credentials, username, password, serverName } = this.#target;
    const { clock, commandTimeout } = this.#host;
    return new Etcd3({
      hosts: `${tls ? 'https' : 'http'}://${this.name}`,
      ...(credentials === undefined ? {} : { credentials }),
      ...(username === undefined || password === undefined
        ? {}
        : { auth: { username, password, callOptions: () => ({ ...endingAfter(clock, commandTimeout) }) } }),
      // etcd3 would send a transaction three times by itself, and shut a host out for five seconds.
      faultHandling: { global: noop, host: () => noop },
      grpcOptions: {
        // Shared connections would outlive a client that was made anew because its connection was half dead.
        'grpc.use_local_subchannel_pool': 1,
        'grpc.enable_retries': 0,
        'grpc.initial_reconnect_backoff_ms': 100,
        'grpc.max_reconnect_backoff_ms': 1_000,
        // More often than every 5 s a server hangs up.
        'grpc.keepalive_time_ms': 10_000,
        'grpc.keepalive_timeout_ms': 5_000,
        ...(serverName === undefined
          ? {}
          : { 'grpc.ssl_target_name_override': serverName, 'grpc.default_authority': serverName }),
      },
    });
  }
}
