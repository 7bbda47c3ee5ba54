import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startProxy } from './proxy.js';

test('a proxy stops, though a reset met a connection that was about to end', async () => {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined);
    socket.resume();
    // Answers as it hangs up: the answer and the end wait at the proxy, and the failure comes behind them.
    socket.once('data', () => socket.end('bye'));
  });
  onTestFinished(() => void server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const proxy = await startProxy({ target: { host: '127.0.0.1', port } });

  const client = connect(proxy.port, proxy.host);
  client.on('error', () => undefined);
  const arrived = proxy.observe('hello');
  client.write('hello');
  await arrived.hit;
  const silence = proxy.blackHole();
  client.resetAndDestroy();
  await once(client, 'close');
  silence.heal();
  proxy.reset();
  await proxy.stop();
  expect(proxy.connections).toBe(0);
});
