import { fromEnvironment } from './environment.js';
import type { ServerHandle, StartOptions } from './handle.js';
import { claimPort } from './ports.js';
import { askPostgres } from './postgres.js';
import { startGroup } from './provide.js';

export interface PgBouncerOptions extends StartOptions {
  /** The server behind it. */
  readonly postgres: ServerHandle;
  /** Default `transaction`. */
  readonly poolMode?: 'session' | 'transaction' | 'statement';
  /** Further settings of its `[pgbouncer]` section. */
  readonly config?: Readonly<Record<string, string | number>>;
}

/** A pooler in front of a PostgreSQL server, with the same user, password and database. */
export async function startPgBouncer(options: PgBouncerOptions): Promise<ServerHandle> {
  const { postgres, poolMode = 'transaction', ...rest } = options;
  const foreign = fromEnvironment('pgbouncer', poolMode === 'transaction' ? rest : { own: true });
  if (foreign !== undefined) return foreign;
  const behind = new URL(postgres.url);
  const database = behind.pathname.slice(1);
  const user = decodeURIComponent(behind.username);
  const password = decodeURIComponent(behind.password);
  const port = await claimPort();
  const url = `postgres://${behind.username}:${behind.password}@127.0.0.1:${port.number}/${database}`;
  return startGroup({
    server: 'pgbouncer',
    url,
    specs: [
      {
        server: 'pgbouncer',
        name: 'pgbouncer',
        port: port.number,
        url,
        files: ({ home, bind, machine }) => ({
          'pgbouncer.ini': [
            '[databases]',
            `${database} = host=${behind.hostname === '127.0.0.1' ? machine : behind.hostname} port=${behind.port} dbname=${database}`,
            '[pgbouncer]',
            ...Object.entries({
              listen_addr: bind,
              listen_port: port.number,
              unix_socket_dir: '',
              auth_type: 'scram-sha-256',
              auth_file: `${home}/users.txt`,
              admin_users: user,
              pool_mode: poolMode,
              max_client_conn: 500,
              default_pool_size: 20,
              ignore_startup_parameters: 'extra_float_digits,options',
              ...options.config,
            }).map(([name, value]) => `${name} = ${value}`),
            '',
          ].join('\n'),
          'users.txt': `"${user}" "${password.replaceAll('"', '""')}"\n`,
        }),
        command: ({ home }) => ['pgbouncer', `${home}/pgbouncer.ini`],
        ready: () => askPostgres(url),
        local: { user: 'postgres' },
      },
    ],
    release: () => port.release(),
  });
}
