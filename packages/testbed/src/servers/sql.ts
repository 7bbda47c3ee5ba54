import type { ServerHandle, StartOptions } from './handle.js';

export interface PostgresOptions extends StartOptions {
  /** Settings of postgresql.conf, such as `{ idle_in_transaction_session_timeout: 500 }`. */
  readonly config?: Readonly<Record<string, string | number>>;
}

/** Database and superuser `holdfast`, password `holdfast`. URL `postgres://holdfast:holdfast@127.0.0.1:5432/holdfast`. */
export function startPostgres(_options?: PostgresOptions): Promise<ServerHandle> {
  throw new Error('not written yet');
}

export interface PgBouncerOptions {
  /** The server behind it. */
  readonly postgres: ServerHandle;
  /** Default `transaction`. */
  readonly poolMode?: 'session' | 'transaction' | 'statement';
  readonly config?: Readonly<Record<string, string | number>>;
}

/** A pooler in front of a PostgreSQL server, with the same user, password and database. */
export function startPgBouncer(_options: PgBouncerOptions): Promise<ServerHandle> {
  throw new Error('not written yet');
}

export interface MySqlOptions extends StartOptions {
  /** Server variables, such as `{ wait_timeout: 2 }`. */
  readonly config?: Readonly<Record<string, string | number>>;
}

/** Database and user `holdfast` (all privileges), password `holdfast`. URL `mariadb://holdfast:holdfast@…/holdfast`. */
export function startMariaDb(_options?: MySqlOptions): Promise<ServerHandle> {
  throw new Error('not written yet');
}

/** As MariaDB, URL `mysql://…`; from Docker or `HOLDFAST_TEST_MYSQL_URL` only. */
export function startMySql(_options?: MySqlOptions): Promise<ServerHandle> {
  throw new Error('not written yet');
}
