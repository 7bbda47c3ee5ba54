import type { CallOptions, ServiceError } from '@grpc/grpc-js';
import { InvalidArgumentError } from '@holdfast/core';

/**
 * A client of etcd3, as far as its type says something of it: `new Etcd3(…)` of any copy of the package. What is
 * called is its hosts' gRPC services, below its retries and circuit breakers, which stay as they are for its owner.
 */
export interface EtcdClient {
  readonly kv: object;
  readonly leaseClient: object;
  readonly watchClient: object;
  close(): void;
}

/** A stream of gRPC, as far as it is used. */
export interface Stream<Request, Response> {
  on(event: 'data', listener: (response: Response) => void): unknown;
  on(event: 'error', listener: (error: ServiceError) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
  write(request: Request): unknown;
  end(): unknown;
  cancel(): void;
}

/** A gRPC client for one of etcd's services: a method for each of its calls, made when etcd3 was loaded. */
export type Service = Readonly<Record<string, unknown>>;

/** A call with one answer. */
export type UnaryMethod = (
  request: object,
  options: CallOptions,
  answered: (error: ServiceError | null, response: unknown) => void,
) => { cancel(): void };

/** A call that is a conversation. */
export type StreamMethod = <Request, Response>(options: CallOptions) => Stream<Request, Response>;

/** One member, as etcd3 1.1.2 keeps it: a gRPC client for each service. */
export interface Host {
  readonly host: string;
  getServiceClient(service: string): Service;
  /** The next call to any service makes a new connection; those under way end on the present one. */
  resetAllServices(): void;
}

/** What etcd3 says about a call to whoever wants to choose its options. */
export interface CallContext {
  readonly service: string;
  readonly method: string;
  readonly params?: object;
  readonly isStream: boolean;
}

/** The members that a client of etcd3 1.1.2 knows of, and how they are to be talked to. */
export interface Pool {
  readonly hosts: readonly Host[];
  readonly options: {
    readonly auth?: { readonly username: string; readonly password: string };
    readonly defaultCallOptions?: CallOptions | ((context: CallContext) => CallOptions);
  };
}

/**
 * Reaches into a client of etcd3 for its hosts.
 *
 * Its own calls go through policies that are made for other things than locks: a transaction is sent three times by
 * itself, three unanswered requests shut a host out for five seconds whatever the application asks for, and an
 * authentication that hangs has no deadline. Nothing about them can be changed on a client that was handed in.
 *
 * @throws InvalidArgumentError for something else than a client of etcd3 1.x
 */
export function poolOf(client: EtcdClient): Pool {
  const { pool } = client as { pool?: Partial<Pool> };
  const [host] = pool?.hosts ?? [];
  if (typeof host?.getServiceClient === 'function' && typeof pool?.options === 'object') return pool as Pool;
  throw new InvalidArgumentError('client', typeof client, 'an Etcd3 of the package etcd3, version 1.1');
}
