import { ConfigError } from '@holdfast/core';
import type { ConnectionPool } from './connections.js';

/** The few things of a knex that we touch, so that any copy and version of it is accepted. */
export interface KnexLike {
  readonly client: KnexClient;
}

export interface KnexClient {
  readonly config?: { readonly client?: unknown };
  readonly driverName?: string;
  readonly pool?: { readonly max?: number };
  acquireConnection(): Promise<unknown>;
  releaseConnection(connection: unknown): Promise<unknown>;
  /** Makes a connection outside the pool. */
  acquireRawConnection(): Promise<unknown>;
  destroyRawConnection(connection: unknown): unknown;
}

/** The databases that a knex may speak to. */
export type Family = 'sqlite' | 'postgres' | 'mysql';

const FAMILIES: Readonly<Record<string, Family>> = {
  'better-sqlite3': 'sqlite',
  pg: 'postgres',
  mysql: 'mysql',
  mysql2: 'mysql',
};

/**
 * Which database a knex speaks to.
 *
 * @throws ConfigError naming the clients that work
 */
export function familyOf({ client }: KnexLike): Family {
  const driver = client?.driverName ?? String(client?.config?.client);
  const family = FAMILIES[driver];
  if (family !== undefined) return family;
  throw new ConfigError(
    `sqlBackend: a knex with the client ${JSON.stringify(driver)} cannot be used; those that can: ${Object.keys(FAMILIES).join(', ')}`,
  );
}

/** Connections that a knex has at most unless it is told otherwise. */
const USUAL = 10;

/**
 * A knex's pool, used for one statement at a time, and half of it at most: a crowd that asks for locks at once must not
 * stand before the queries of whoever holds one. The application closes it, not we.
 *
 * @param destroy ends a connection in such a way that knex does not lend it again
 */
export function knexPool<C extends object>(
  { client }: KnexLike,
  destroy: (connection: C) => void,
): ConnectionPool<C> {
  return {
    most: Math.max(1, Math.floor((client.pool?.max ?? USUAL) / 2)),
    async acquire() {
      return (await client.acquireConnection()) as C;
    },
    release(connection, broken) {
      if (broken) destroy(connection);
      client.releaseConnection(connection).catch(() => {});
    },
    async close() {},
  };
}
