/**
 * What we call on an ioredis client. Typed by its methods, so that another copy or version of ioredis is accepted.
 * Checked with ioredis 5.11 and 6.0.
 */
export interface Client {
  readonly stream?: Socket | undefined;
  connect(): Promise<unknown>;
  disconnect(): void;
  call(command: string, args: readonly (string | number)[]): Promise<unknown>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'connect' | 'end', listener: () => void): unknown;
  on(event: 'message', listener: (channel: string, message: string) => void): unknown;
  subscribe(channel: string): Promise<unknown>;
}

/** The part of a socket that we use. A custom `Connector` may lack some of it. */
export interface Socket {
  readonly bytesRead?: number;
  /** On its way to the server's machine. */
  readonly connecting?: boolean;
  /** There with TLS alone: true until the handshake is done. */
  readonly secureConnecting?: boolean;
  cork?(): void;
  uncork?(): void;
  unref?(): unknown;
  destroy?(): unknown;
}

/**
 * An ioredis `Redis` or `Cluster` that the application made, of any copy and version. We read its options and, of a
 * `Redis`, call `duplicate`; nothing else is asked of it, and nothing is sent on it.
 */
export interface AnyClient {
  readonly isCluster?: boolean | undefined;
  readonly options: object;
  duplicate(...override: never[]): unknown;
}

/** What our own connections insist on, whatever the application's client is set to. */
export function ourOptions(connectionName: string, connectTimeout: number): Record<string, unknown> {
  return {
    connectionName,
    connectTimeout,
    // We hang up at once; ioredis' own timer for that would keep the process alive for as long as this.
    disconnectTimeout: 1,
    lazyConnect: true,
    // A connection lives once: its successor is ours to make, so that no command is ever sent again behind our back.
    retryStrategy: null,
    reconnectOnError: null,
    sentinelRetryStrategy: null,
    sentinelCommandTimeout: connectTimeout,
    failoverDetector: false,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
    enableReadyCheck: false,
    enableAutoPipelining: false,
    disableClientInfo: true,
    monitor: false,
    readOnly: false,
    role: 'master',
    // The link notices silence by itself, for all commands with one timer.
    commandTimeout: undefined,
    socketTimeout: undefined,
    // Keys carry the prefix already, and so do channels and patterns, where ioredis would not put it.
    keyPrefix: '',
    stringNumbers: false,
    // ioredis 6 speaks RESP3 by default, 5 does not: one protocol, one behaviour.
    protocol: 2,
    replyMapping: 'legacy',
    himportFieldsets: undefined,
    scripts: undefined,
  };
}
