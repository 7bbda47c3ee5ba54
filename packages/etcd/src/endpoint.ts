import { Etcd3 } from 'etcd3';
import { type EtcdClient, poolOf } from './client.js';
import type { Target } from './options.js';
import { Rpc } from './rpc.js';

/** One way to the servers: a member. */
export interface Endpoint {
  /** For messages: `host:port`. */
  readonly name: string;
  readonly rpc: Rpc;
  /** Whether TLS is spoken with it; unknown of a client that was handed in. */
  readonly tls?: boolean;
  /** Closes its connections, if they are ours. */
  close(): void;
}

/**
 * The members that a client of the application's knows of, on its own connections.
 *
 * @throws InvalidArgumentError
 */
export function handedIn(client: EtcdClient): readonly Endpoint[] {
  const { hosts, options } = poolOf(client);
  return hosts.map((host) => ({ name: host.host, rpc: new Rpc(host, options), close: () => undefined }));
}

/** The members that were configured, on connections of our own. */
export function ownEndpoints(target: Target): readonly Endpoint[] {
  const { tls, hosts, credentials, username, password, serverName } = target;
  const client = new Etcd3({
    hosts: hosts.map((host) => `${tls ? 'https' : 'http'}://${host}`),
    ...(credentials === undefined ? {} : { credentials }),
    ...(username === undefined || password === undefined ? {} : { auth: { username, password } }),
    grpcOptions: {
      // Shared connections would outlive those that were made anew because the old ones were half dead.
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
  const { hosts: members, options } = poolOf(client);
  return members.map((host) => ({
    name: host.host,
    rpc: new Rpc(host, options),
    tls,
    // Closing what has been closed does nothing.
    close: () => client.close(),
  }));
}
