import { createConnection, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import knexPackage from 'knex';
import type { Backend } from './subject.js';

/** How many requests the server has carried out. */
export interface CommandCounter {
  count(): Promise<number>;
  close(): Promise<unknown>;
}

/** A counter for the backend's server; undefined where it has none, or is several servers. */
export function commandCounter(backend: Backend, url: string): CommandCounter | undefined {
  switch (backend) {
    case 'redis':
      return redisCounter(url);
    case 'etcd':
      return { count: () => etcdMessages(url.replace('etcd://', 'http://')), close: async () => undefined };
    case 'zookeeper':
      return { count: () => zooKeeperPackets(new URL(url)), close: async () => undefined };
    case 'postgres':
      return sqlCounter('pg', url, async (raw) => {
        const sum = 'select sum(xact_commit + xact_rollback)::int8 as n from pg_stat_database';
        const { rows } = (await raw(sum)) as { rows: { n: string }[] };
        return Number(rows[0]?.n);
      });
    case 'mariadb':
      return sqlCounter('mysql2', url.replace('mariadb://', 'mysql://'), async (raw) => {
        const [rows] = (await raw("show global status like 'Questions'")) as [{ Value: string }[]];
        return Number(rows[0]?.Value);
      });
    default:
      return undefined;
  }
}

/** Scripts, and the messages that they send; not the calls that they make inside. */
const REDIS_COMMANDS = new Set([
  'eval',
  'evalsha',
  'fcall',
  'publish',
  'spublish',
  'subscribe',
  'ssubscribe',
]);

function redisCounter(url: string): CommandCounter {
  const client = new Redis(url);
  return {
    async count() {
      const stats = await client.info('commandstats');
      let calls = 0;
      for (const [, name, n] of stats.matchAll(/cmdstat_([^:]+):calls=(\d+)/g)) {
        if (REDIS_COMMANDS.has(name ?? '')) calls += Number(n);
      }
      return calls;
    },
    close: () => client.quit(),
  };
}

function sqlCounter(
  client: string,
  connection: string,
  read: (raw: (sql: string) => Promise<unknown>) => Promise<number>,
): CommandCounter {
  const db = knexPackage.knex({ client, connection, pool: { min: 0, max: 1 } });
  return { count: () => read(async (sql) => db.raw(sql)), close: () => db.destroy() };
}

/** Requests, and messages on streams, from clients to the server. */
async function etcdMessages(url: string): Promise<number> {
  const text = await (await fetch(new URL('/metrics', url))).text();
  let messages = 0;
  for (const [, n] of text.matchAll(/^grpc_server_msg_received_total\{.*\} (\S+)$/gm)) messages += Number(n);
  return messages;
}

/** Packets from clients, heartbeats included. */
async function zooKeeperPackets({ hostname, port }: URL): Promise<number> {
  const socket: Socket = createConnection({ host: hostname, port: Number(port) });
  socket.end('srvr');
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  return Number(/^Received: (\d+)/m.exec(text)?.[1]);
}
