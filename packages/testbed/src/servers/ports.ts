import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** A TCP port of the loopback address, ours until released. */
export interface ClaimedPort {
  readonly number: number;
  release(): void;
}

// Below the range from which the system takes ports for outgoing connections: a client that connects to a stopped
// server can neither take its port nor, on loopback, connect to itself.
const LOWEST = 15_000;
const HIGHEST = 31_999;

/**
 * Claims a port that nobody listens on. It stays claimed while its server is stopped: the UDP port of the same number
 * serves as the mark that other test processes see, and the system takes the mark away when this process ends.
 */
export async function claimPort(): Promise<ClaimedPort> {
  for (;;) {
    const number = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST + 1));
    const mark = await markPort(number);
    if (mark === undefined) continue;
    if (await isFree(number)) return { number, release: () => void mark.close() };
    mark.close();
  }
}

async function markPort(port: number): Promise<Socket | undefined> {
  const socket = createSocket('udp4');
  try {
    const bound = once(socket, 'listening');
    socket.bind({ port, address: '127.0.0.1', exclusive: true });
    await bound;
    return socket.unref();
  } catch {
    socket.close();
    return undefined;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    const listening = once(server, 'listening');
    // Every address, since a server on any of them would be in the way of one in a container.
    server.listen({ port, host: '0.0.0.0', exclusive: true });
    await listening;
    return true;
  } catch {
    return false;
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

/** Several ports, in one piece. */
export interface ClaimedPorts {
  readonly numbers: readonly number[];
  /** `127.0.0.1:p1,127.0.0.1:p2` */
  readonly addresses: string;
  release(): void;
}

export async function claimPorts(count: number): Promise<ClaimedPorts> {
  const ports = await Promise.all(Array.from({ length: count }, claimPort));
  const numbers = ports.map((port) => port.number);
  return {
    numbers,
    addresses: addressList(numbers),
    release() {
      for (const port of ports) port.release();
    },
  };
}

export function addressList(ports: readonly number[]): string {
  return ports.map((port) => `127.0.0.1:${port}`).join(',');
}
