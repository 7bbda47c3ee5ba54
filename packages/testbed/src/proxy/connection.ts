import type { Socket } from 'node:net';
import type { ActiveFault, Aftermath, AnswerAction, Direction, Rule } from './fault.js';
import { matches, type ProxyConnection } from './matchers.js';

/** What a connection asks its proxy about: which faults are in force now. */
export interface Weather {
  /** The first rule that matches the chunk and is not spent. */
  ruleFor(direction: Direction, chunk: Buffer, connection: ProxyConnection): Rule | undefined;
  /** Whether nothing passes in this direction. */
  isBlack(direction: Direction, connection: ProxyConnection): boolean;
  /** Milliseconds that a chunk which arrives now takes. */
  latency(direction: Direction): number;
  rewriteOpening(opening: Buffer): Buffer;
  count(direction: Direction, bytes: number): void;
}

/** Something on its way through one direction of a connection. Order is kept, whatever holds the first of them. */
interface Parcel {
  readonly due: number;
  /** Held until this fault heals. */
  readonly held?: ActiveFault | undefined;
  readonly deliver: () => void;
  readonly size: number;
}

/** So much may wait before we stop reading, as a real network's buffers would fill. */
const BUFFER = 1 << 20;

/** One direction of a connection: reads from one socket, writes to the other, in order. */
class Lane {
  readonly #parcels: Parcel[] = [];
  readonly #from: Socket;
  readonly #isBlocked: () => boolean;
  #size = 0;
  #lastDue = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(from: Socket, isBlocked: () => boolean) {
    this.#from = from;
    this.#isBlocked = isBlocked;
  }

  send(
    deliver: () => void,
    options: { latency?: number; size?: number; held?: ActiveFault | undefined } = {},
  ): void {
    const { latency = 0, size = 0, held } = options;
    this.#lastDue = Math.max(this.#lastDue, performance.now() + latency);
    this.#parcels.push({ due: this.#lastDue, held, deliver, size });
    this.#size += size;
    if (this.#size > BUFFER) this.#from.pause();
    this.pump();
  }

  /** Delivers what may pass now. Called whenever a fault has healed. */
  pump(): void {
    clearTimeout(this.#timer);
    for (;;) {
      const [first] = this.#parcels;
      if (first === undefined || this.#isBlocked() || first.held?.healed === false) return;
      const wait = first.due - performance.now();
      if (wait > 0) {
        this.#timer = setTimeout(() => this.pump(), Math.ceil(wait));
        return;
      }
      this.#parcels.shift();
      this.#size -= first.size;
      if (this.#size <= BUFFER && this.#from.isPaused()) this.#from.resume();
      first.deliver();
    }
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#parcels.length = 0;
  }
}

/** A client's connection and ours to the server, with everything that may happen between the two. */
export class Connection implements ProxyConnection {
  readonly id: number;
  readonly closed: Promise<void>;
  opening: Buffer = Buffer.alloc(0);
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #weather: Weather;
  readonly #lanes: Readonly<Record<Direction, Lane>>;
  readonly #muted: Record<Direction, boolean> = { up: false, down: false };
  /** What is to happen with the next thing that comes down. */
  #answerFault: { readonly rule: Rule; readonly action: AnswerAction } | undefined;

  constructor(id: number, client: Socket, server: Socket, weather: Weather) {
    this.id = id;
    this.#client = client;
    this.#server = server;
    this.#weather = weather;
    this.#lanes = {
      up: new Lane(client, () => weather.isBlack('up', this)),
      down: new Lane(server, () => weather.isBlack('down', this)),
    };
    this.#listen('up', client, server);
    this.#listen('down', server, client);
    client.on('data', (chunk: Buffer) => this.#fromClient(chunk));
    server.on('data', (chunk: Buffer) => this.#fromServer(chunk));
    this.closed = Promise.all(
      [client, server].map((socket) => new Promise<void>((resolve) => socket.once('close', () => resolve()))),
    ).then(() => {
      this.#lanes.up.clear();
      this.#lanes.down.clear();
    });
  }

  pump(): void {
    this.#lanes.up.pump();
    this.#lanes.down.pump();
  }

  reset(): void {
    abort(this.#client);
    abort(this.#server);
  }

  end(): void {
    this.#muted.up = true;
    this.#muted.down = true;
    for (const socket of [this.#client, this.#server]) {
      socket.end();
      // What still comes is of no interest, but must be read for the end to be seen.
      socket.resume();
    }
  }

  /** An end or a failure on one side reaches the other by the same way as data: late, or not before the fault heals. */
  #listen(direction: Direction, from: Socket, to: Socket): void {
    const latency = () => this.#weather.latency(direction);
    from.setNoDelay(true);
    from.once('end', () => this.#lanes[direction].send(() => to.end(), { latency: latency() }));
    // Any number of times: a socket may fail once more as it is destroyed.
    from.on('error', () => this.#lanes[direction].send(() => abort(to), { latency: latency() }));
  }

  #fromClient(arrived: Buffer): void {
    this.#weather.count('up', arrived.length);
    if (this.#muted.up) return;
    const isOpening = this.opening.length === 0;
    if (isOpening) this.opening = arrived;
    const chunk = isOpening ? this.#weather.rewriteOpening(arrived) : arrived;
    const rule = this.#weather.ruleFor('up', chunk, this);
    if (rule === undefined) return void this.#forward('up', chunk);
    rule.spend();
    const { action } = rule;
    switch (action.kind) {
      case 'swallow':
        return void rule.strike();
      case 'hold-request':
        rule.strike();
        return void this.#forward('up', chunk, { held: rule });
      case 'drop-request':
        return void this.#cut('up', Buffer.alloc(0), action.afterwards, rule);
      case 'cut-request':
        return void this.#cut(
          'up',
          chunk.subarray(0, action.bytes ?? chunk.length >> 1),
          action.afterwards,
          rule,
        );
      case 'drop-answer':
      case 'hold-answer':
      case 'cut-answer':
        return void this.#forward('up', chunk, {
          before: () => {
            this.#answerFault = { rule, action };
          },
        });
    }
  }

  #fromServer(chunk: Buffer): void {
    this.#weather.count('down', chunk.length);
    if (this.#muted.down) return;
    const pending = this.#answerFault;
    if (pending !== undefined && !pending.rule.healed)
      return void this.#answer(chunk, pending.rule, pending.action);
    const rule = this.#weather.ruleFor('down', chunk, this);
    rule?.spend();
    if (rule?.action.kind !== 'swallow') this.#forward('down', chunk);
    rule?.strike();
  }

  #answer(chunk: Buffer, rule: Rule, action: AnswerAction): void {
    switch (action.kind) {
      case 'hold-answer':
        this.#forward('down', chunk, { held: rule });
        if (rule.hits === 0) rule.strike();
        return;
      case 'drop-answer':
        if (action.answer !== undefined && !matches(action.answer, chunk, this)) return;
        this.#answerFault = undefined;
        return void this.#cut('down', Buffer.alloc(0), action.afterwards, rule);
      case 'cut-answer':
        this.#answerFault = undefined;
        return void this.#cut(
          'down',
          chunk.subarray(0, action.bytes ?? chunk.length >> 1),
          action.afterwards,
          rule,
        );
    }
  }

  #forward(
    direction: Direction,
    chunk: Buffer,
    { held, before }: { readonly held?: ActiveFault; readonly before?: () => void } = {},
  ): void {
    const to = this.#sink(direction);
    const deliver = () => {
      before?.();
      to.write(chunk);
    };
    this.#lanes[direction].send(deliver, {
      latency: this.#weather.latency(direction),
      size: chunk.length,
      held,
    });
  }

  /** Lets these bytes pass as the last in this direction. */
  #cut(direction: Direction, bytes: Buffer, afterwards: Aftermath, rule: Rule): void {
    const to = this.#sink(direction);
    this.#muted[direction] = true;
    const finish = () => {
      if (afterwards === 'reset') this.reset();
      if (afterwards === 'end') this.end();
      rule.strike();
    };
    this.#lanes[direction].send(() => (bytes.length === 0 ? finish() : to.write(bytes, finish)), {
      latency: this.#weather.latency(direction),
    });
  }

  #sink(direction: Direction): Socket {
    return direction === 'up' ? this.#server : this.#client;
  }
}

/**
 * RST at once: by itself `resetAndDestroy` first waits until all that was written has been taken. A socket whose own
 * end is still under way takes none, and would never be closed (Node 20.20).
 */
function abort(socket: Socket): void {
  if (!socket.writableEnded) socket.resetAndDestroy();
  socket.destroy();
}
