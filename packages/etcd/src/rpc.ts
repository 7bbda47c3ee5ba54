import type { CallOptions, InterceptingCall, Interceptor, ServiceError } from '@grpc/grpc-js';
import type {
  IAlarmRequest,
  IAlarmResponse,
  ILeaseGrantRequest,
  ILeaseGrantResponse,
  ILeaseKeepAliveRequest,
  ILeaseKeepAliveResponse,
  ILeaseTimeToLiveResponse,
  IMemberListResponse,
  IRangeRequest,
  IRangeResponse,
  IStatusResponse,
  ITxnRequest,
  ITxnResponse,
  IWatchRequest,
  IWatchResponse,
} from 'etcd3';
import { Call } from './call.js';
import type { CallContext, Host, Pool, Service, Stream, StreamMethod, UnaryMethod } from './client.js';
import { failureOf } from './errors.js';
import { withoutStacks } from './stacks.js';

export type WatchStream = Stream<IWatchRequest, IWatchResponse>;
type KeepAliveStream = Stream<ILeaseKeepAliveRequest, ILeaseKeepAliveResponse>;

/** gRPC's code for what was taken back. */
const CANCELLED = 1;
/** Errors of the connection, by gRPC's code: cancelled by us for want of an answer, timed out, broken, unavailable. */
const BROKEN = new Set([CANCELLED, 4, 13, 14]);

/** What goes along with every call. */
interface Pass {
  readonly interceptors: Interceptor[];
}

/** A pass with a token that has been asked for. */
interface Authentication {
  readonly call: Call;
  readonly pass: Promise<Pass>;
}

/**
 * etcd's calls to one member. Each is sent once, on the connection that etcd3 made; whoever calls has a deadline, and
 * cancels the call when it is over.
 *
 * A member without a leader refuses at once what it could not answer for several seconds otherwise (`hasleader`).
 */
export class Rpc {
  readonly #host: Host;
  readonly #options: Pool['options'];
  #pass: Pass | undefined;
  #authentication: Authentication | undefined;

  constructor(host: Host, options: Pool['options']) {
    this.#host = host;
    this.#options = options;
    if (options.auth === undefined) this.#pass = passOf();
  }

  txn(request: ITxnRequest, call: Call): Promise<ITxnResponse> {
    return this.#ask('KV', 'txn', request, call);
  }

  range(request: IRangeRequest, call: Call): Promise<IRangeResponse> {
    return this.#ask('KV', 'range', request, call);
  }

  leaseGrant(request: ILeaseGrantRequest, call: Call): Promise<ILeaseGrantResponse> {
    return this.#ask('Lease', 'leaseGrant', request, call);
  }

  leaseRevoke(id: string, call: Call): Promise<unknown> {
    return this.#ask('Lease', 'leaseRevoke', { ID: id }, call);
  }

  leaseTimeToLive(id: string, call: Call): Promise<ILeaseTimeToLiveResponse> {
    return this.#ask('Lease', 'leaseTimeToLive', { ID: id }, call);
  }

  alarms(call: Call): Promise<IAlarmResponse> {
    const request: IAlarmRequest = { action: 'Get', alarm: 'None' };
    return this.#ask('Maintenance', 'alarm', request, call);
  }

  status(call: Call): Promise<IStatusResponse> {
    return this.#ask('Maintenance', 'status', {}, call);
  }

  memberList(call: Call): Promise<IMemberListResponse> {
    return this.#ask('Cluster', 'memberList', {}, call);
  }

  /** One keep-alive, on a stream of its own. The ttl that the lease has again, s; not above 0 for an unknown one. */
  leaseKeepAlive(id: string, call: Call): Promise<number> {
    return this.#authenticated(
      call,
      (pass) =>
        new Promise((resolve, reject) => {
          const stream: KeepAliveStream = this.#stream('Lease', 'leaseKeepAlive', pass, call);
          stream.on('data', ({ TTL }) => {
            resolve(Number(TTL));
            stream.end();
            stream.cancel();
          });
          stream.on('error', reject);
          stream.on('end', () => reject(new Error('the stream of keep-alives ended without an answer')));
          stream.write({ ID: id });
        }),
    );
  }

  /** A stream of watches. Its errors are its caller's to hear. */
  async watch(call: Call): Promise<WatchStream> {
    return this.#stream('Watch', 'watch', this.#pass ?? (await this.#authenticate(call)));
  }

  /** The connection seems dead, though nobody has said so: the next call makes a new one. */
  reset(): void {
    this.#host.resetAllServices();
  }

  /** Once more with a new token, where the present one has expired: such a request was not applied. */
  async #authenticated<T>(call: Call, send: (pass: Pass) => Promise<T>): Promise<T> {
    const pass = this.#pass ?? (await this.#authenticate(call));
    try {
      return await send(pass);
    } catch (error) {
      if (this.#options.auth === undefined || failureOf(error) !== 'stale-auth') throw error;
      this.#forget(pass);
      return send(await this.#authenticate(call));
    }
  }

  #ask<T>(service: string, method: string, request: object, call: Call): Promise<T> {
    return this.#authenticated(call, (pass) => this.#send(service, method, request, pass, call));
  }

  #send<T>(service: string, method: string, request: object, pass: Pass, call: Call): Promise<T> {
    return new Promise((resolve, reject) => {
      const client = this.#host.getServiceClient(service);
      const options = this.#callOptions(pass, { service, method, params: request, isStream: false });
      const send = methodOf<UnaryMethod>(client, method);
      const heard: Parameters<UnaryMethod>[2] = (error, response) => {
        if (error === null) return resolve(response as T);
        this.#heard(error, service, client);
        reject(error);
      };
      const run = () => send.call(client, request, options, heard);
      // An interceptor of the application's runs here too, and its errors shall have their stacks.
      call.started(this.#options.defaultCallOptions === undefined ? withoutStacks(run) : run());
    });
  }

  #stream<Request, Response>(
    service: string,
    method: string,
    pass: Pass,
    call?: Call,
  ): Stream<Request, Response> {
    const client = this.#host.getServiceClient(service);
    const options = this.#callOptions(pass, { service, method, isStream: true });
    const open = methodOf<StreamMethod>(client, method);
    const stream = open.call<Service, [CallOptions], Stream<Request, Response>>(client, options);
    stream.on('error', (error) => {
      if (failureOf(error) === 'stale-auth') this.#forget(pass);
      // A stream that has done its duty is cancelled too.
      if (call?.cancelled || error.code !== CANCELLED) this.#heard(error, service, client);
    });
    call?.started(stream);
    return stream;
  }

  /** gRPC waits ever longer before it connects again, and does not know of a connection that is half dead. */
  #heard(error: ServiceError, service: string, client: Service): void {
    if (!BROKEN.has(error.code) || error.message.includes('etcdserver:')) return;
    // Calls on the connection of yesterday say nothing about that of today.
    if (this.#current(service) === client) this.#host.resetAllServices();
  }

  #current(service: string): Service | undefined {
    try {
      return this.#host.getServiceClient(service);
    } catch {
      return undefined;
    }
  }

  #callOptions(pass: Pass, context: CallContext): CallOptions {
    const { defaultCallOptions } = this.#options;
    if (defaultCallOptions === undefined) return pass;
    const options =
      typeof defaultCallOptions === 'function' ? defaultCallOptions(context) : defaultCallOptions;
    return { ...options, interceptors: [...(options.interceptors ?? []), ...pass.interceptors] };
  }

  /** Asks for a token, once for all who need one, on the connection of the others. Whoever gives up ends it for all. */
  #authenticate(waiting: Call): Promise<Pass> {
    this.#authentication ??= this.#askForToken();
    waiting.started(this.#authentication.call);
    return this.#authentication.pass;
  }

  #askForToken(): Authentication {
    const { username: name, password } = this.#options.auth ?? {};
    const call = new Call();
    const ask = async (): Promise<Pass> => {
      try {
        const request = { name, password };
        const { token } = await this.#send<{ token: string }>(
          'Auth',
          'authenticate',
          request,
          passOf(),
          call,
        );
        this.#pass = passOf(token);
        return this.#pass;
      } finally {
        this.#authentication = undefined;
      }
    };
    return { call, pass: ask() };
  }

  #forget(pass: Pass): void {
    if (this.#pass === pass && this.#options.auth !== undefined) this.#pass = undefined;
  }
}

function methodOf<M>(client: Service, name: string): M {
  return client[name] as M;
}

/**
 * The metadata of calls, set from within: a client that was handed in may come with another copy of gRPC, which takes
 * no metadata made by ours.
 */
function passOf(token?: string): Pass {
  const interceptor: Interceptor = (options, next) => {
    const call = next(options);
    const start = call.start.bind(call);
    // A wrapper of gRPC's own would cost a twentieth of an uncontended acquisition: the call's start is replaced.
    call.start = (metadata, listener) => {
      metadata.set('hasleader', 'true');
      if (token !== undefined) metadata.set('token', token);
      start(metadata, listener);
    };
    return call as InterceptingCall;
  };
  return { interceptors: [interceptor] };
}
