import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createLocks } from '@holdfast/core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createBackend } from './module.js';

/** Bounds of time scale with this, as in the conformance suite. */
const FACTOR = Number(process.env.HOLDFAST_TIME_FACTOR ?? 2);

/** Accepts connections and says nothing, as a server that stands still does. */
let server: Server;
let clients: Set<Socket>;

beforeEach(async () => {
  clients = new Set();
  server = createServer({ allowHalfOpen: true }, (client) => {
    clients.add(client);
    client.resume();
    client.once('end', () => {
      clients.delete(client);
      client.end();
    });
    client.on('error', () => clients.delete(client));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => server.close());

describe.each(['postgres', 'mariadb', 'mysql'])('a %s server that says nothing', (scheme) => {
  it('is unavailable, without the password, and keeps no connection that was given up', async () => {
    const { port } = server.address() as AddressInfo;
    const url = `${scheme}://me:secret@127.0.0.1:${port}/app`;
    const error = await createLocks(createBackend({ url }), { commandTimeout: 500 }).catch(
      (caught: Error) => caught,
    );
    expect(error).toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
    expect(JSON.stringify(error)).not.toContain('secret');
    const given = performance.now();
    while (clients.size > 0) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(performance.now() - given).toBeLessThan(1000 * FACTOR);
  });
});
