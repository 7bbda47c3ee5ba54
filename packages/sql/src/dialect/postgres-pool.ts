import { MissingPackageError } from '@holdfast/core';
import type { ConnectionPool } from '../connections.js';
import { type KnexLike, knexPool } from '../knex.js';
import type { PostgresConnection } from './postgres.js';
import type { ListeningClient, ListeningSource } from './postgres-wakeups.js';
import { Sockets } from './sockets.js';

/** What we use of pg. */
interface Pg {
  readonly Pool: new (config: object) => PgPool;
  readonly Client: new (config: object) => PgClient;
}

interface PgPool {
  connect(): Promise<PgClient>;
  end(): Promise<void>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'connect', listener: (client: PgClient) => void): unknown;
}

interface PgClient extends ListeningClient {
  connect(): Promise<unknown>;
  release(destroy?: boolean): void;
  /** Lets the process end while this connection is open. */
  unref(): void;
  readonly connection?: { readonly stream?: { destroy(): unknown } };
}

/** Both kinds of connection that a store needs. */
export interface PostgresAccess {
  readonly pool: ConnectionPool<PostgresConnection>;
  readonly listening: ListeningSource;
}

/** ms after which a connection that does not come about is given up. Whoever waits for it has a deadline besides. */
const CONNECTING = 10_000;

/** A pool of our own. Idle connections do not keep the process alive. */
export async function ownPostgres(url: string, max: number): Promise<PostgresAccess> {
  const { Pool, Client } = await loadPg();
  const sockets = new Sockets();
  const connection = {
    connectionString: url,
    application_name: 'holdfast',
    keepAlive: true,
    stream: () => sockets.make(),
  };
  const pool = new Pool({
    ...connection,
    max,
    connectionTimeoutMillis: CONNECTING,
    allowExitOnIdle: true,
  });
  // An idle connection that breaks leaves the pool by itself; whoever asks next gets another.
  pool.on('error', () => {});
  // The pool listens only while a connection is idle; one that breaks while it is lent out rejects its statement and
  // emits this besides, which nobody may leave unheard.
  pool.on('connect', (client) => client.on('error', () => {}));
  return {
    pool: {
      most: max,
      acquire: () => pool.connect(),
      release: (client, broken) => (client as PgClient).release(broken),
      close() {
        // It would wait for connections that are still being made.
        pool.end().catch(() => {});
        return sockets.close();
      },
    },
    listening: {
      async connect() {
        const client = new Client({ ...connection, connectionTimeoutMillis: CONNECTING });
        client.on('error', () => {});
        await client.connect();
        client.unref();
        return client;
      },
      drop: destroy,
    },
  };
}

/** A knex's connections; the one that listens is made by knex, outside its pool. */
export function knexPostgres(knex: KnexLike): PostgresAccess {
  return {
    pool: knexPool<PostgresConnection>(knex, (client) => {
      // Knex sees the end of the connection only with the next turn of the event loop, and looks at this mark before.
      Object.assign(client, { __knex__disposed: 'closed: a statement was not answered in time' });
      destroy(client);
    }),
    listening: {
      async connect() {
        const client = (await knex.client.acquireRawConnection()) as PgClient;
        client.unref();
        return client;
      },
      drop: destroy,
    },
  };
}

function destroy(client: ListeningClient | PostgresConnection): void {
  (client as PgClient).connection?.stream?.destroy();
}

async function loadPg(): Promise<Pg> {
  try {
    const loaded = (await import('pg')) as unknown as { readonly default?: Pg } & Pg;
    return loaded.default ?? loaded;
  } catch (cause) {
    throw new MissingPackageError('pg', 'PostgreSQL', { cause });
  }
}
