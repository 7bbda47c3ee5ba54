import { type EtcdHandle, startEtcd } from '@holdfast/testbed';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { FACTOR, fresh, open, pause, until } from './test-kit.js';

let server: EtcdHandle;

beforeAll(async () => {
  server = await startEtcd({ own: true });
});

afterAll(() => server.stop());

/** How much clients have sent to the server: requests and messages on streams, and of these the transactions. */
async function received(): Promise<{ messages: number; transactions: number }> {
  const text = await (await fetch(`http://${server.node.address}/metrics`)).text();
  let [messages, transactions] = [0, 0];
  for (const [, method, n] of text.matchAll(
    /^grpc_server_msg_received_total\{grpc_method="(\w+)".*\} (\S+)$/gm,
  )) {
    messages += Number(n);
    if (method === 'Txn') transactions += Number(n);
  }
  return { messages, transactions };
}

it('many that wait for long cost the server little', { timeout: 60_000 * FACTOR }, async () => {
  await using a = await open({ hosts: server.hosts });
  await using b = await open({ hosts: server.hosts });
  const name = fresh();
  const held = await a.locks.lock(name).acquire();
  const over = new AbortController();
  const waiters = Array.from({ length: 300 }, () =>
    b.locks
      .lock(name)
      .acquire({ signal: over.signal })
      .catch(() => undefined),
  );
  // Each watches the key before its own, and its own: which the one behind it watches already.
  await until(() => b.backend.kept.watches === 301, 20_000 * FACTOR);
  const before = await received();
  await pause(13_000);
  const after = await received();
  // Two or three looks of four requests; beside them what keeps leases and streams alive.
  expect(after.transactions - before.transactions).toBeGreaterThanOrEqual(8);
  expect(after.messages - before.messages).toBeLessThan(80);
  over.abort();
  await Promise.all(waiters);
  await held.release();
});
