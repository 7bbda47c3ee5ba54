import { describe, expect, test } from 'vitest';
import { startEtcd } from './etcd.js';
import { askEtcd } from './etcd-gateway.js';
import type { ServerHandle, ServerNode } from './handle.js';
import { askMySql, startMariaDb } from './mysql.js';
import { startPgBouncer } from './pgbouncer.js';
import { askPostgres, startPostgres } from './postgres.js';
import { exchange } from './probe.js';
import { startRedis } from './redis.js';
import { startZooKeeper } from './zookeeper.js';

interface Case {
  readonly name: string;
  readonly start: () => Promise<ServerHandle>;
  /** Rejects within seconds when the server does not answer. */
  readonly ask: (node: ServerNode) => Promise<unknown>;
}

const CASES: readonly Case[] = [
  { name: 'Redis', start: () => startRedis({ own: true }), ask: (node) => ping(node) },
  {
    name: 'etcd',
    start: () => startEtcd({ own: true }),
    ask: (node) => askEtcd(node.port, { scheme: 'http' }, '/health'),
  },
  {
    name: 'ZooKeeper',
    start: () => startZooKeeper({ own: true }),
    ask: (node) => exchange(node.port, { send: 'srvr', accept: (text) => text.includes('Mode: standalone') }),
  },
  { name: 'PostgreSQL', start: () => startPostgres({ own: true }), ask: (node) => askPostgres(node.url) },
  { name: 'PgBouncer', start: startPooler, ask: (node) => askPostgres(node.url) },
  { name: 'MariaDB', start: () => startMariaDb({ own: true }), ask: (node) => askMySql(node.url) },
];

// Six servers start side by side, five times each.
describe.concurrent('a server does as it is told', { timeout: 120_000 }, () => {
  test.each(CASES)(
    '$name is killed, started, paused, resumed, restarted and removed',
    async ({ start, ask }) => {
      await using handle = await start();
      const { node } = handle;
      expect(node.state).toBe('running');
      await ask(node);

      await node.kill();
      expect(node.state).toBe('stopped');
      await expect(ask(node)).rejects.toThrow();
      await node.start();
      await ask(node);

      await node.pause();
      expect(node.state).toBe('paused');
      await expect(ask(node)).rejects.toThrow();
      await node.resume();
      await ask(node);

      await node.restart();
      await ask(node);
      expect(await node.log()).not.toBe('');

      await handle.stop();
      await handle.stop();
      await expect(ask(node)).rejects.toThrow();
    },
  );
});

test('a paused server can be killed', async () => {
  await using redis = await startRedis({ own: true });
  await redis.node.pause();
  await redis.node.kill();
  await redis.node.start();
  await ping(redis.node);
});

test('a server that does not start says why', async () => {
  const start = startRedis({ config: { 'no-such-directive': 'yes' } });
  await expect(start).rejects.toThrow(/redis could not be started.*no-such-directive/s);
});

function ping(node: ServerNode): Promise<unknown> {
  return exchange(node.port, { send: 'PING\r\n', accept: (text) => text.includes('PONG') });
}

async function startPooler(): Promise<ServerHandle> {
  const postgres = await startPostgres({ own: true });
  const pooler = await startPgBouncer({ own: true, postgres });
  const stop = async () => {
    await pooler.stop();
    await postgres.stop();
  };
  return { ...pooler, stop, [Symbol.asyncDispose]: stop };
}
