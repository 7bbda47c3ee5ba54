import mysql from 'mysql2/promise';
import pg from 'pg';
import type { ServerHandle } from '../../servers/handle.js';
import { startMariaDb } from '../../servers/mysql.js';
import { startPostgres } from '../../servers/postgres.js';
import { killed, onlyNode, paused, type Served } from '../server-faults.js';
import type { ChaosTarget } from '../target.js';
import { type Wired, Wires, wireFaults } from '../wire-faults.js';
import { countLocks, openLocks } from './locks.js';

type Running = Served & Wired;

/** What is asked of a database besides locks. */
interface Administrator {
  start(): Promise<ServerHandle>;
  /** The clients that it has, without the one that asks. */
  connections(url: string): Promise<readonly number[]>;
  /** Ends these clients' connections. */
  kill(url: string, connections: readonly number[]): Promise<void>;
}

export const postgres: ChaosTarget<Running> = sqlTarget('postgres', 'PostgreSQL', {
  start: () => startPostgres({ own: true }),
  connections: (url) =>
    onPostgres(url, async (client) => {
      const others =
        'SELECT pid FROM pg_stat_activity WHERE usename = current_user AND pid <> pg_backend_pid()';
      const { rows } = await client.query<{ pid: number }>(others);
      return rows.map(({ pid }) => pid);
    }),
  kill: (url, connections) =>
    onPostgres(url, async (client) => {
      await client.query('SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid', [connections]);
    }),
});

export const mariadb: ChaosTarget<Running> = sqlTarget('mariadb', 'MariaDB', {
  start: () => startMariaDb({ own: true }),
  connections: (url) =>
    onMariaDb(url, async (client) => {
      const others = 'SELECT id FROM information_schema.processlist WHERE user = ? AND id <> connection_id()';
      const [rows] = await client.query<mysql.RowDataPacket[]>(others, ['holdfast']);
      return rows.map(({ id }) => Number(id));
    }),
  kill: (url, connections) =>
    onMariaDb(url, async (client) => {
      // One that has gone by itself meanwhile is an error.
      for (const id of connections) await client.query(`KILL ${id}`).catch(() => undefined);
    }),
});

function sqlTarget(
  id: 'postgres' | 'mariadb',
  product: string,
  administrator: Administrator,
): ChaosTarget<Running> {
  return {
    id,
    description: `@holdfast/sql on ${product}`,
    crossProcess: true,
    fairness: 'fifo',
    exclusion: 'promised',
    ttl: { min: 400, max: 1_500 },
    recoverWithin: 15_000,
    faults: [
      killed('server-killed', 'the server', onlyNode),
      paused('server-paused', 'the server', onlyNode),
      {
        id: 'clients-killed',
        description: 'the server closes every connection, in the midst of it',
        touches: 'everybody',
        lasts: { min: 0, max: 0 },
        async inject({ servers: { url } }) {
          await administrator.kill(url, await administrator.connections(url));
          return () => {};
        },
      },
      ...wireFaults('worker'),
    ],
    async start({ workers }) {
      const servers = await administrator.start();
      const wires = await Wires.start(servers.nodes, workers);
      // The tables are made before anything is counted.
      await (await openLocks(id, servers.url)).close();
      return {
        servers,
        url: (worker) => {
          const url = new URL(servers.url);
          url.host = wires.addresses(worker);
          return url.href;
        },
        wires: (worker) => wires.of(worker),
        async leftovers() {
          const connections = await administrator.connections(servers.url);
          return { ...(await countLocks(id, servers.url)), connections: connections.length };
        },
        async stop() {
          await wires[Symbol.asyncDispose]();
          await servers.stop();
        },
      };
    },
  };
}

async function onPostgres<T>(url: string, ask: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await ask(client);
  } finally {
    await client.end();
  }
}

async function onMariaDb<T>(url: string, ask: (client: mysql.Connection) => Promise<T>): Promise<T> {
  const client = await mysql.createConnection(url.replace(/^mariadb:/, 'mysql:'));
  try {
    return await ask(client);
  } finally {
    await client.end();
  }
}
