/** `up` is from the client to the server, `down` from the server to the client. */
export type Direction = 'up' | 'down';

/** Where a proxy forwards to: a node, an address, or a URL whose host and port count. */
export type ProxyTarget =
  | { readonly host: string; readonly port: number; readonly url?: string }
  | string
  | URL;

/** Chooses a piece of traffic: bytes that it contains, or a function of it. TLS hides what it would look for. */
export type Matcher = string | Uint8Array | RegExp | ((chunk: Buffer, connection: number) => boolean);

/** What becomes of the connection after the fault: RST on both sides, an orderly end, or open and silent for ever. */
export type Aftermath = 'reset' | 'end' | 'mute';

export interface RuleOptions {
  /** How often the rule applies before it is spent. Default 1. */
  readonly times?: number;
}

/** A fault in force. `heal` takes it back; so does the end of a `using` block. */
export interface Fault extends Disposable {
  /** How often it has struck. */
  readonly hits: number;
  /** Resolves when it has struck for the first time, to the end: an answer dropped, a connection cut. */
  readonly hit: Promise<void>;
  /** Takes the fault back. What was held is delivered, as the network would after a partition. Idempotent. */
  heal(): void;
}

/**
 * A TCP proxy that can do to a connection what networks do. Faults on all traffic last until healed; rules strike at
 * a chosen request. A chunk is what arrived in one read: small requests and answers come as one.
 */
export interface FaultProxy extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** `host:port` */
  readonly address: string;
  /** The target's URL with the proxy's address in it; `tcp://…` when the target had no URL. */
  readonly url: string;
  /** Connections that are open now. */
  readonly connections: number;
  /** Requests' bytes that went up since the start: to await traffic, or to show its absence. */
  readonly bytes: Readonly<Record<Direction, number>>;

  /** Adds `up` or `down` milliseconds to every chunk, and up to `jitter` more at random. Order is kept. */
  delay(by: { readonly up?: number; readonly down?: number; readonly jitter?: number }): Fault;
  /** New connections are refused (ECONNREFUSED). Those that are open stay. Resolves when it is so. */
  refuse(): Promise<Fault>;
  /** RST for every open connection, on both sides. */
  reset(): void;
  /** Orderly end (FIN) of every open connection, on both sides. */
  end(): void;
  /** Nothing passes, nothing is closed; new connections are accepted and stay silent. Default both directions. */
  blackHole(direction?: Direction | 'both'): Fault;

  /** The request reaches the server; the answer is thrown away as it arrives, then the aftermath (default reset). */
  dropAnswerTo(request: Matcher, options?: DropAnswerOptions): Fault;
  /** The request never reaches the server; then the aftermath (default reset). */
  dropRequest(request: Matcher, options?: RuleOptions & { readonly then?: Aftermath }): Fault;
  /** The request, and what follows it on that connection, waits until the fault heals. */
  holdRequest(request: Matcher, options?: RuleOptions): Fault;
  /** The request reaches the server; what comes back on that connection waits until the fault heals. */
  holdAnswerTo(request: Matcher, options?: RuleOptions): Fault;
  /** Only the first `bytes` of the request (default half of it) reach the server, then the aftermath. */
  cutRequest(request: Matcher, options?: CutOptions): Fault;
  /** Only the first `bytes` of the answer (default half of it) reach the client, then the aftermath. */
  cutAnswerTo(request: Matcher, options?: CutOptions): Fault;
  /** A chunk from the server disappears and the connection goes on: a lost message, not a lost answer. */
  swallow(message: Matcher, options?: RuleOptions): Fault;

  /** Takes back every fault and every rule. Resolves when connections are accepted again. */
  heal(): Promise<void>;
  /** Ends the proxy and its connections. Idempotent. */
  stop(): Promise<void>;
}

export interface DropAnswerOptions extends RuleOptions {
  /** Default `reset`. `mute`: the connection stays open, and nothing more comes down on it. */
  readonly then?: Aftermath;
  /**
   * Which chunk is the answer, where the server sends other things first (HTTP/2: `http2Answer`). Everything before
   * it is thrown away as well. Default the first chunk after the request.
   */
  readonly answer?: Matcher;
}

/** Matches the chunk in which an HTTP/2 server begins to answer: one with a HEADERS frame. */
export function http2Answer(_chunk: Buffer): boolean {
  throw new Error('not written yet');
}

export interface CutOptions extends RuleOptions {
  readonly bytes?: number;
  /** Default `reset`. */
  readonly then?: Aftermath;
}

/** Starts a proxy on a free port of the loopback address. */
export function startProxy(_options: { readonly target: ProxyTarget }): Promise<FaultProxy> {
  throw new Error('not written yet');
}
