import { connect, Socket } from 'node:net';

/**
 * The sockets of one pool. A driver closes its connections politely and forgets them: where the server stands still, or
 * has not answered the first greeting yet, they would stay open, and some drivers wait for them.
 */
export class Sockets {
  readonly #open = new Set<Socket>();

  /** One that its driver connects. */
  make(): Socket {
    return this.#own(new Socket());
  }

  /** One that connects to a path or a port at once. Nothing waits in it, and it does not keep the process alive. */
  connect(to: { readonly socketPath?: string; readonly host?: string; readonly port?: number }): Socket {
    const { socketPath, host = 'localhost', port = 0 } = to;
    const socket = this.#own(socketPath === undefined ? connect(port, host) : connect(socketPath));
    socket.setNoDelay(true);
    socket.setKeepAlive(true);
    socket.unref();
    return socket;
  }

  /** Closes all that are still open, once what was written last has gone out. */
  async close(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    await Promise.all(
      [...this.#open].map(
        (socket) =>
          new Promise<void>((resolve) => {
            socket.once('close', () => resolve());
            socket.destroy();
          }),
      ),
    );
  }

  #own(socket: Socket): Socket {
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    return socket;
  }
}
