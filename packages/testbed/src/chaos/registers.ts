import { once } from 'node:events';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Recorder } from '../history/recorder.js';

/**
 * Two registers for each lock name, for the holders to write to: one that refuses tokens older than the newest it has
 * seen, and one that takes whatever comes. Served on a Unix socket, one line of JSON for each question and answer, by
 * the process that records them, so that a writer's death loses nothing.
 */
export class RegisterServer implements AsyncDisposable {
  readonly path: string;
  readonly #recorder: Recorder;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #registers = new Map<string, { newest: bigint; version: number }>();
  readonly #listeners = new Set<(write: AcceptedWrite) => void>();

  private constructor(path: string, recorder: Recorder) {
    this.path = path;
    this.#recorder = recorder;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  static async start(path: string, recorder: Recorder): Promise<RegisterServer> {
    const registers = new RegisterServer(path, recorder);
    registers.#server.listen(path);
    await once(registers.#server, 'listening');
    return registers;
  }

  /** Tells of every accepted fenced write, until the returned function is called. */
  onWrite(listener: (write: AcceptedWrite) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    const closed = once(this.#server, 'close');
    this.#server.close();
    await closed;
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket));
    const lines = createInterface({ input: socket });
    // A killed writer's socket ends in an error; what it had asked for has been written down or has not.
    for (const source of [socket, lines]) source.on('error', () => socket.destroy());
    lines.on('line', (line) => {
      const answer: Answer = this.#answer(JSON.parse(line) as Question);
      socket.write(`${JSON.stringify(answer)}\n`);
    });
  }

  #answer(question: Question): Answer {
    const register = this.#register(question.name);
    if (question.ask === 'version') return { version: register.version };
    const { name, writer, token } = question;
    if (question.ask === 'update') {
      const { base } = question;
      this.#recorder.append({
        type: 'unfenced-write',
        name,
        writer,
        token,
        base,
        replaced: register.version,
      });
      register.version = base + 1;
      return { version: register.version };
    }
    const accepted = BigInt(token) >= register.newest;
    if (accepted) register.newest = BigInt(token);
    this.#recorder.append({ type: 'fenced-write', name, writer, token, accepted });
    if (accepted) for (const listener of this.#listeners) listener({ name, writer, token });
    return { accepted };
  }

  #register(name: string): { newest: bigint; version: number } {
    const present = this.#registers.get(name);
    if (present !== undefined) return present;
    const made = { newest: -1n, version: 0 };
    this.#registers.set(name, made);
    return made;
  }
}

/** A fenced write that was taken. */
export interface AcceptedWrite {
  readonly name: string;
  readonly writer: string;
  readonly token: string;
}

type Question =
  | { readonly ask: 'version'; readonly name: string }
  | {
      readonly ask: 'update';
      readonly name: string;
      readonly writer: string;
      readonly token: string;
      readonly base: number;
    }
  | { readonly ask: 'fenced'; readonly name: string; readonly writer: string; readonly token: string };

interface Answer {
  readonly version?: number;
  readonly accepted?: boolean;
}

/** A writer's connection to the registers. Answers come in the order of the questions. */
export class RegisterClient {
  readonly #socket: Socket;
  readonly #writer: string;
  readonly #waiting: ((answer: Answer) => void)[] = [];

  private constructor(socket: Socket, writer: string) {
    this.#socket = socket;
    this.#writer = writer;
    createInterface({ input: socket }).on('line', (line) => {
      this.#waiting.shift()?.(JSON.parse(line) as Answer);
    });
  }

  static async connect(path: string, writer: string): Promise<RegisterClient> {
    const socket = createConnection(path);
    await once(socket, 'connect');
    return new RegisterClient(socket, writer);
  }

  /** True if the token was taken, false if it was older than one that had been. */
  async writeFenced(name: string, token: bigint): Promise<boolean> {
    const answer = await this.#ask({ ask: 'fenced', name, writer: this.#writer, token: String(token) });
    return answer.accepted === true;
  }

  async readVersion(name: string): Promise<number> {
    const { version = 0 } = await this.#ask({ ask: 'version', name });
    return version;
  }

  /** Replaces whatever version is there by the one after `base`. */
  async update(name: string, token: bigint, base: number): Promise<void> {
    await this.#ask({ ask: 'update', name, writer: this.#writer, token: String(token), base });
  }

  async close(): Promise<void> {
    const closed = once(this.#socket, 'close');
    this.#socket.end();
    await closed;
  }

  #ask(question: Question): Promise<Answer> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#socket.write(`${JSON.stringify(question)}\n`);
    });
  }
}
