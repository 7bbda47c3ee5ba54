import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { claimPort, claimPorts } from './ports.js';

test('ports that are claimed at the same time differ', async () => {
  const ports = await claimPorts(50);
  expect(new Set(ports.numbers).size).toBe(50);
  ports.release();
});

test('a claimed port can be listened on', async () => {
  const port = await claimPort();
  const server = createServer().listen(port.number, '127.0.0.1');
  await once(server, 'listening');
  server.close();
  port.release();
});
