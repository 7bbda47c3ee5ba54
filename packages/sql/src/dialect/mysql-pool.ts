import { MissingPackageError } from '@holdfast/core';
import type { ConnectionPool } from '../connections.js';
import { type KnexLike, knexPool } from '../knex.js';
import type { MysqlConnection } from './mysql.js';
import { Sockets } from './sockets.js';

/** What we use of mysql2. */
interface Mysql2 {
  createPool(config: object): MysqlPool;
}

interface MysqlPool {
  getConnection(callback: (error: Error | null, connection: PooledConnection) => void): void;
  end(callback: () => void): void;
  on(event: 'connection', listener: (connection: PooledConnection) => void): unknown;
}

/** What it tells of where a connection should go. */
interface SocketAddress {
  readonly socketPath?: string;
  readonly host?: string;
  readonly port?: number;
}

interface PooledConnection extends MysqlConnection {
  release(): void;
  on(event: 'error', listener: (error: Error) => void): unknown;
}

/** ms after which a connection that does not come about is given up. Whoever waits for it has a deadline besides. */
const CONNECTING = 10_000;

/**
 * A pool of our own. Its connections read committed rows without locking them (at the default isolation, contending
 * for one lock is mostly deadlocks), wait no longer for a row than a call may take, and do not keep the process alive.
 */
export async function ownMysql(
  url: string,
  options: { readonly max: number; readonly timeout: number },
): Promise<ConnectionPool<MysqlConnection>> {
  const { createPool } = await loadMysql2();
  const sockets = new Sockets();
  const pool = createPool({
    uri: url.replace(/^mariadb:/, 'mysql:'),
    connectionLimit: options.max,
    connectTimeout: CONNECTING,
    stream: ({ config }: { config: SocketAddress }) => sockets.connect(config),
  });
  const seconds = Math.max(1, Math.floor(options.timeout / 1000));
  pool.on('connection', (connection) => {
    connection.on('error', () => {});
    for (const sql of [
      'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',
      `SET SESSION innodb_lock_wait_timeout = ${seconds}`,
    ]) {
      connection.query(sql, [], () => {});
    }
  });
  return {
    most: options.max,
    acquire: () =>
      new Promise((resolve, reject) => {
        pool.getConnection((error, connection) => (error === null ? resolve(connection) : reject(error)));
      }),
    release(connection, broken) {
      if (broken) connection.destroy();
      else (connection as PooledConnection).release();
    },
    close() {
      // It would call back only after every connection has taken its leave.
      pool.end(() => {});
      return sockets.close();
    },
  };
}

/** A knex's pool. */
export function knexMysql(knex: KnexLike): ConnectionPool<MysqlConnection> {
  return knexPool<MysqlConnection>(knex, (connection) => connection.destroy());
}

async function loadMysql2(): Promise<Mysql2> {
  try {
    const loaded = (await import('mysql2')) as unknown as { readonly default?: Mysql2 } & Mysql2;
    return loaded.default ?? loaded;
  } catch (cause) {
    throw new MissingPackageError('mysql2', 'MySQL or MariaDB', { cause });
  }
}
