import { createServer, type Server } from 'node:net';
import { expect, it } from 'vitest';
import { startProxy } from '../proxy/proxy.js';
import type { ServerHandle, ServerNode } from '../servers/handle.js';
import { exchange } from '../servers/probe.js';
import { startRedis } from '../servers/redis.js';
import { allOrNone, assembled } from './assembled.js';
import { Wires } from './wire-faults.js';

const PROBLEM = new Error('the root could not be made');

const ping = ({ host, port }: Pick<ServerNode, 'host' | 'port'>): Promise<Buffer> =>
  exchange(port, { host, send: 'PING\r\n', timeout: 5_000, accept: (answer) => answer.includes('PONG') });

it('a target that fails to start ends what it had started, and tells why', async () => {
  const started: { servers?: ServerHandle; wires?: Wires } = {};
  const starting = assembled(async (own) => {
    const servers = own(await startRedis({ own: true }));
    const wires = own(await Wires.start(servers.nodes, 2));
    Object.assign(started, { servers, wires });
    await ping(servers.node);
    throw PROBLEM;
  });
  await expect(starting).rejects.toBe(PROBLEM);
  const { servers, wires } = started;
  for (const end of [servers?.node, ...(wires?.of(0) ?? []), ...(wires?.of(1) ?? [])]) {
    if (end === undefined) throw new Error('it was not started');
    await expect(ping(end)).rejects.toThrow();
  }
});

it('a target that has started is stopped, the last part first', async () => {
  const order: string[] = [];
  const part = (name: string) => ({ name, [Symbol.asyncDispose]: async () => void order.push(name) });
  const running = await assembled(async (own) => ({
    url: own(part('server')).name + own(part('proxy')).name,
  }));
  expect(running.url).toBe('serverproxy');
  await running.stop();
  expect(order).toEqual(['proxy', 'server']);
});

it('of parts that start together none is left when one of them fails', async () => {
  const target = { host: '127.0.0.1', port: await listening(createServer((socket) => socket.end('PONG'))) };
  const proxy = startProxy({ target });
  await expect(allOrNone([Promise.reject(PROBLEM), proxy])).rejects.toBe(PROBLEM);
  await expect(ping(await proxy)).rejects.toThrow();
});

async function listening(server: Server): Promise<number> {
  server.unref();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as { port: number }).port;
}
