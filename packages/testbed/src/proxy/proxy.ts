import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { claimPort } from '../servers/ports.js';
import { Connection, type Weather } from './connection.js';
import { type Action, ActiveFault, type Aftermath, type Direction, type Fault, Rule } from './fault.js';
import { type Matcher, matches, type ProxyConnection } from './matchers.js';

export type { Aftermath, Direction, Fault } from './fault.js';

/** Where a proxy forwards to: a node, an address, or a URL whose (only) host and port count. */
export type ProxyTarget =
  | { readonly host: string; readonly port: number; readonly url?: string }
  | string
  | URL;

export interface ProxyOptions {
  readonly target: ProxyTarget;
  /** Changes the first bytes that a client sends, for protocols that carry addresses. */
  readonly rewriteOpening?: (opening: Buffer) => Buffer;
}

export interface RuleOptions {
  /** How often the rule applies before it is spent. Default 1. */
  readonly times?: number;
}

export interface BlackHoleOptions {
  /** The connections that are concerned; those that have sent nothing yet are asked when they do. Default all. */
  readonly only?: (connection: ProxyConnection) => boolean;
}

export interface DropAnswerOptions extends RuleOptions {
  /** Default `reset`. `mute`: the connection stays open, and nothing more comes down on it. */
  readonly afterwards?: Aftermath;
  /**
   * Which chunk is the answer, where the server sends other things first (HTTP/2: `http2Answer`). Everything before
   * it is thrown away as well. Default the first chunk after the request.
   */
  readonly answer?: Matcher;
}

export interface CutOptions extends RuleOptions {
  readonly bytes?: number;
  /** Default `reset`. */
  readonly afterwards?: Aftermath;
}

/**
 * A TCP proxy that can do to a connection what networks do. Faults on all traffic last until healed; rules strike at
 * a chosen request. A chunk is what arrived in one read: small requests and answers come as one. When several rules
 * match, the one made first strikes. Answers to earlier requests that are still under way share the fate of the
 * answer that a rule is about, as they would on a cut cable.
 */
export interface FaultProxy extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** `host:port` */
  readonly address: string;
  /** The target's URL with the proxy's address in it; `tcp://…` when the target had no URL. */
  readonly url: string;
  /** Connections that are open now, on either side. */
  readonly connections: number;
  /** Bytes that have arrived since the start. */
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
  blackHole(direction?: Direction | 'both', options?: BlackHoleOptions): Fault;

  /** The request reaches the server; the answer is thrown away as it arrives, then the aftermath (default reset). */
  dropAnswerTo(request: Matcher, options?: DropAnswerOptions): Fault;
  /** The request never reaches the server; then the aftermath (default reset). */
  dropRequest(request: Matcher, options?: RuleOptions & { readonly afterwards?: Aftermath }): Fault;
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
  /** Does nothing but count: `hits` requests so far, `hit` at the first. It does not shadow rules made later. */
  observe(request: Matcher): Fault;

  /** Takes back every fault and every rule. Resolves when connections are accepted again. */
  heal(): Promise<void>;
  /** Ends the proxy and its connections. Idempotent. */
  stop(): Promise<void>;
}

/** Starts a proxy on a free port of the loopback address. */
export async function startProxy(options: ProxyOptions): Promise<FaultProxy> {
  const port = await claimPort();
  const proxy = new TcpProxy(options, port.number, () => port.release());
  await proxy.listen();
  return proxy;
}

class TcpProxy implements FaultProxy {
  readonly host = '127.0.0.1';
  readonly port: number;
  readonly bytes: Record<Direction, number> = { up: 0, down: 0 };
  readonly #target: { readonly host: string; readonly port: number; readonly url?: string };
  readonly #options: ProxyOptions;
  readonly #releasePort: () => void;
  readonly #connections = new Set<Connection>();
  readonly #delays = new Map<
    ActiveFault,
    { readonly up?: number; readonly down?: number; readonly jitter?: number }
  >();
  readonly #blackHoles = new Map<
    ActiveFault,
    BlackHoleOptions & { readonly direction: Direction | 'both' }
  >();
  readonly #refusals = new Set<ActiveFault>();
  readonly #observers = new Map<ActiveFault, Matcher>();
  readonly #rules = new Set<Rule>();
  #server: Server | undefined;
  #listening: Promise<void> = Promise.resolve();
  #accepted = 0;
  #stopped: Promise<void> | undefined;

  constructor(options: ProxyOptions, port: number, releasePort: () => void) {
    this.#options = options;
    this.#target = addressOf(options.target);
    this.port = port;
    this.#releasePort = releasePort;
  }

  get address(): string {
    return `${this.host}:${this.port}`;
  }

  get url(): string {
    const { url, host, port } = this.#target;
    return url === undefined ? `tcp://${this.address}` : url.replace(`${host}:${port}`, this.address);
  }

  get connections(): number {
    return this.#connections.size;
  }

  async listen(): Promise<void> {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#accept(client));
    this.#server = server;
    server.listen(this.port, this.host);
    await once(server, 'listening');
  }

  delay(by: { readonly up?: number; readonly down?: number; readonly jitter?: number }): Fault {
    const fault = new ActiveFault(() => this.#delays.delete(fault));
    this.#delays.set(fault, by);
    return fault;
  }

  async refuse(): Promise<Fault> {
    const fault = new ActiveFault(() => {
      this.#refusals.delete(fault);
      if (this.#refusals.size > 0 || this.#stopped !== undefined) return;
      this.#listening = this.listen();
      // Whoever heals the proxy learns of it.
      this.#listening.catch(() => undefined);
    });
    this.#refusals.add(fault);
    await this.#listening;
    this.#server?.close();
    return fault;
  }

  reset(): void {
    for (const connection of this.#connections) connection.reset();
  }

  end(): void {
    for (const connection of this.#connections) connection.end();
  }

  blackHole(direction: Direction | 'both' = 'both', options: BlackHoleOptions = {}): Fault {
    const fault = new ActiveFault(() => {
      this.#blackHoles.delete(fault);
      this.#pump();
    });
    this.#blackHoles.set(fault, { ...options, direction });
    return fault;
  }

  dropAnswerTo(request: Matcher, { times, afterwards = 'reset', answer }: DropAnswerOptions = {}): Fault {
    return this.#rule('up', request, { kind: 'drop-answer', afterwards, answer }, times);
  }

  dropRequest(
    request: Matcher,
    { times, afterwards = 'reset' }: RuleOptions & { readonly afterwards?: Aftermath } = {},
  ): Fault {
    return this.#rule('up', request, { kind: 'drop-request', afterwards }, times);
  }

  holdRequest(request: Matcher, { times }: RuleOptions = {}): Fault {
    return this.#rule('up', request, { kind: 'hold-request' }, times);
  }

  holdAnswerTo(request: Matcher, { times }: RuleOptions = {}): Fault {
    return this.#rule('up', request, { kind: 'hold-answer' }, times);
  }

  cutRequest(request: Matcher, { times, bytes, afterwards = 'reset' }: CutOptions = {}): Fault {
    return this.#rule('up', request, { kind: 'cut-request', bytes, afterwards }, times);
  }

  cutAnswerTo(request: Matcher, { times, bytes, afterwards = 'reset' }: CutOptions = {}): Fault {
    return this.#rule('up', request, { kind: 'cut-answer', bytes, afterwards }, times);
  }

  swallow(message: Matcher, { times }: RuleOptions = {}): Fault {
    return this.#rule('down', message, { kind: 'swallow' }, times);
  }

  observe(request: Matcher): Fault {
    const fault = new ActiveFault(() => this.#observers.delete(fault));
    this.#observers.set(fault, request);
    return fault;
  }

  async heal(): Promise<void> {
    const faults = [
      this.#delays.keys(),
      this.#blackHoles.keys(),
      this.#refusals,
      this.#observers.keys(),
      this.#rules,
    ];
    for (const fault of faults.flatMap((some) => [...some])) fault.heal();
    await this.#listening;
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    await this.#listening;
    this.#server?.close();
    this.reset();
    await Promise.all([...this.#connections].map((connection) => connection.closed));
    this.#releasePort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #accept(client: Socket): void {
    const { host, port } = this.#target;
    // A server that refuses shows as a reset: the connection to us has been accepted already.
    const server = connect({ host, port, allowHalfOpen: true, noDelay: true });
    this.#accepted += 1;
    const connection = new Connection(this.#accepted, client, server, this.#weather);
    this.#connections.add(connection);
    void connection.closed.then(() => this.#connections.delete(connection));
  }

  readonly #weather: Weather = {
    ruleFor: (direction, chunk, connection) => {
      if (direction === 'up') this.#notice(chunk, connection);
      return [...this.#rules].find(
        (rule) => !rule.spent && rule.direction === direction && matches(rule.matcher, chunk, connection),
      );
    },
    isBlack: (direction, connection) =>
      [...this.#blackHoles.values()].some(
        (hole) =>
          (hole.direction === 'both' || hole.direction === direction) && (hole.only?.(connection) ?? true),
      ),
    latency: (direction) =>
      [...this.#delays.values()].reduce(
        (sum, by) => sum + (by[direction] ?? 0) + Math.random() * (by.jitter ?? 0),
        0,
      ),
    rewriteOpening: (opening) => this.#options.rewriteOpening?.(opening) ?? opening,
    count: (direction, bytes) => {
      this.bytes[direction] += bytes;
    },
  };

  #notice(chunk: Buffer, connection: ProxyConnection): void {
    for (const [fault, matcher] of this.#observers) if (matches(matcher, chunk, connection)) fault.strike();
  }

  #rule(direction: Direction, matcher: Matcher, action: Action, times = 1): Fault {
    const rule = new Rule({
      direction,
      matcher,
      action,
      times,
      onHeal: () => {
        this.#rules.delete(rule);
        this.#pump();
      },
    });
    this.#rules.add(rule);
    return rule;
  }

  #pump(): void {
    for (const connection of this.#connections) connection.pump();
  }
}

function addressOf(target: ProxyTarget): {
  readonly host: string;
  readonly port: number;
  readonly url?: string;
} {
  if (typeof target === 'object' && !(target instanceof URL)) return target;
  const url = new URL(String(target));
  return { host: url.hostname, port: Number(url.port), url: String(target) };
}
