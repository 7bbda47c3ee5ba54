import mysql from 'mysql2/promise';
import pg from 'pg';
import type { ServerHandle } from '../../servers/handle.js';
import { startMariaDb } from '../../servers/mysql.js';
import { startPostgres } from '../../servers/postgres.js';
import { assembled } from '../assembled.js';
import { killed, onlyNode, paused, restarted, type Served } from '../server-faults.js';
import type { ChaosFault, ChaosTarget, FaultContext } from '../target.js';
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
  /** Lets sessions that begin from now on live in that zone. */
  setZone(url: string, zone: string): Promise<void>;
  /** Deletes every lock, held or not. */
  deleteLocks(url: string): Promise<void>;
}

/** Zones far apart, among them some with daylight saving; and what a server is in without being told. */
const ZONES = {
  postgres: ['Asia/Tokyo', 'America/New_York', 'Europe/Berlin', 'Pacific/Kiritimati'],
  mariadb: ['+09:00', '-05:00', '+02:00', '+13:00'],
} as const;
const HOME_ZONE = { postgres: 'UTC', mariadb: 'SYSTEM' } as const;

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
  setZone: (url, zone) =>
    onPostgres(url, async (client) => {
      await client.query(`ALTER ROLE CURRENT_USER SET timezone = '${zone}'`);
    }),
  deleteLocks: (url) =>
    onPostgres(url, async (client) => {
      await client.query('DELETE FROM holdfast_locks');
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
  setZone: (url, zone) =>
    onMariaDb(url, async (client) => {
      await client.query(`SET GLOBAL time_zone = '${zone}'`);
    }),
  deleteLocks: (url) =>
    onMariaDb(url, async (client) => {
      await client.query('DELETE FROM holdfast_locks');
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
      restarted('server-restarted', 'the server', onlyNode),
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
      {
        id: 'rows-deleted',
        description: 'every lock is deleted by somebody else',
        touches: 'everybody',
        // The rows go under their holders: fencing alone can help.
        exclusion: 'fencing-only',
        lasts: { min: 0, max: 0 },
        async inject({ servers: { url } }) {
          await administrator.deleteLocks(url);
          return () => {};
        },
      },
      mixedZones(id, administrator),
      ...(id === 'postgres' ? [serializable(administrator)] : []),
      ...wireFaults('worker'),
    ],
    start: ({ workers }) =>
      assembled(async (own) => {
        const servers = own(await administrator.start());
        const wires = own(await Wires.start(servers.nodes, workers));
        // The tables are made before anything is counted.
        await (await openLocks(id, servers.url)).close();
        return {
          servers,
          url: (worker: number) => {
            const url = new URL(servers.url);
            url.host = wires.addresses(worker);
            return url.href;
          },
          wires: (worker: number) => wires.of(worker),
          async leftovers() {
            const connections = await administrator.connections(servers.url);
            return { ...(await countLocks(id, servers.url)), connections: connections.length };
          },
        };
      }),
  };
}

/** Half of the sessions begin again, in another zone than the other half: nothing that is stored may depend on it. */
function mixedZones(id: 'postgres' | 'mariadb', administrator: Administrator): ChaosFault<Running> {
  return {
    id: 'zones-mixed',
    description: 'half of the sessions live in another time zone than the others',
    touches: 'everybody',
    async inject({ servers: { url } }, { random }) {
      await administrator.setZone(url, random.pick(ZONES[id]));
      await endSome(administrator, url, random);
      return () => administrator.setZone(url, HOME_ZONE[id]);
    },
  };
}

/** Conflicts between transactions fail here that would wait elsewhere: nobody who asks for a lock may hear of them. */
function serializable(administrator: Administrator): ChaosFault<Running> {
  const setting = 'default_transaction_isolation';
  return {
    id: 'serializable',
    description: 'half of the sessions are SERIALIZABLE by default',
    touches: 'everybody',
    async inject({ servers: { url } }, { random }) {
      await onPostgres(url, (client) =>
        client.query(`ALTER ROLE CURRENT_USER SET ${setting} = serializable`),
      );
      await endSome(administrator, url, random);
      return async () => {
        await onPostgres(url, (client) => client.query(`ALTER ROLE CURRENT_USER RESET ${setting}`));
      };
    },
  };
}

async function endSome(
  administrator: Administrator,
  url: string,
  random: FaultContext['random'],
): Promise<void> {
  const connections = await administrator.connections(url);
  await administrator.kill(
    url,
    connections.filter(() => random.chance(0.5)),
  );
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
