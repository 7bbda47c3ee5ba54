import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';

export interface ProbeOptions {
  /** Sent as soon as the connection is open; nothing where the server speaks first. */
  readonly send?: string | Uint8Array;
  /** Whether what came so far is the answer; throws when it never will be. */
  readonly accept: (received: Buffer) => boolean;
  readonly host?: string;
  readonly tls?: boolean;
  /** Milliseconds for the whole exchange. Default 1000. */
  readonly timeout?: number;
}

/** One exchange of raw bytes with a server, to see whether it serves: no client library, so no retries of theirs. */
export function exchange(port: number, options: ProbeOptions): Promise<Buffer> {
  const { send, accept, host = '127.0.0.1', tls = false, timeout = 1000 } = options;
  return new Promise((resolve, reject) => {
    // Whether the server is up is asked, not who it is.
    const socket = tls ? connectTls({ host, port, rejectUnauthorized: false }) : connect({ host, port });
    let received = Buffer.alloc(0);
    const timer = setTimeout(() => socket.destroy(new Error(`no answer within ${timeout} ms`)), timeout);
    socket.once(tls ? 'secureConnect' : 'connect', () => {
      if (send !== undefined) socket.write(send);
    });
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      try {
        if (!accept(received)) return;
        resolve(received);
        socket.destroy();
      } catch (error) {
        socket.destroy(error as Error);
      }
    });
    socket.once('error', reject);
    socket.once('close', () => {
      clearTimeout(timer);
      reject(new Error(`the connection was closed after ${received.length} bytes`));
    });
  });
}
