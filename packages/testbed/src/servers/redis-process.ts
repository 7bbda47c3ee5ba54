import { Redis } from 'ioredis';
import type { ServerName } from './handle.js';
import type { Place, ProcessSpec } from './spec.js';
import type { Certificate } from './tls.js';

/** What distinguishes one redis-server process from another. */
export interface RedisProcess {
  readonly server: ServerName;
  readonly name: string;
  readonly port: number;
  readonly morePorts?: readonly number[];
  readonly url?: string;
  readonly password?: string | undefined;
  readonly certificate?: Certificate | undefined;
  readonly persistence?: 'none' | 'aof' | undefined;
  /** Lines of redis.conf in their order, after ours. */
  readonly lines?: readonly string[];
  readonly config?: Readonly<Record<string, string | number>> | undefined;
  readonly sentinel?: boolean;
  /** Whether it serves; default: it takes connections. */
  readonly ready?: (client: Redis) => Promise<void>;
}

/** How to run one redis-server, as a data node or as a sentinel. */
export function redisProcess(options: RedisProcess): ProcessSpec {
  const { server, name, port, certificate, password } = options;
  const file = options.sentinel === true ? 'sentinel.conf' : 'redis.conf';
  return {
    server,
    name,
    port,
    ...(options.morePorts !== undefined && { morePorts: options.morePorts }),
    url: options.url ?? redisUrl(`127.0.0.1:${port}`, { password, tls: certificate !== undefined }),
    files: (place) => ({
      [file]: `${configuration(options, place).join('\n')}\n`,
      ...(certificate !== undefined && { 'cert.pem': certificate.cert, 'key.pem': certificate.key }),
    }),
    command: ({ home }) => [
      'redis-server',
      `${home}/${file}`,
      ...(options.sentinel === true ? ['--sentinel'] : []),
    ],
    ready: () =>
      askRedis(port, { password, certificate }, async (client) => {
        await options.ready?.(client);
      }),
  };
}

function configuration(options: RedisProcess, { home, bind }: Place): string[] {
  const { port, certificate, password, persistence = 'none' } = options;
  const data = [
    'save ""',
    `appendonly ${persistence === 'aof' ? 'yes' : 'no'}`,
    'appendfsync always',
    // A replica is in step as soon as it can be.
    'repl-diskless-sync-delay 0',
    'repl-ping-replica-period 1',
    ...(password === undefined ? [] : [`requirepass ${quote(password)}`, `masterauth ${quote(password)}`]),
  ];
  const tls = [
    'port 0',
    `tls-port ${port}`,
    `tls-cert-file ${home}/cert.pem`,
    `tls-key-file ${home}/key.pem`,
    `tls-ca-cert-file ${home}/cert.pem`,
    'tls-auth-clients no',
  ];
  return [
    `bind ${bind}`,
    'protected-mode no',
    'daemonize no',
    `dir ${home}`,
    ...(certificate === undefined ? [`port ${port}`] : tls),
    ...(options.sentinel === true ? [] : data),
    ...(options.lines ?? []),
    ...Object.entries(options.config ?? {}).map(([name, value]) => `${name} ${value === '' ? '""' : value}`),
  ];
}

function quote(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}

export function redisUrl(
  addresses: string,
  options: {
    readonly scheme?: string | undefined;
    readonly user?: string | undefined;
    readonly password?: string | undefined;
    readonly tls?: boolean | undefined;
    readonly path?: string | undefined;
  } = {},
): string {
  const { scheme = '', user = '', password, tls = false, path = '' } = options;
  const credentials =
    password === undefined ? '' : `${encodeURIComponent(user)}:${encodeURIComponent(password)}@`;
  return `redis${tls ? 's' : ''}${scheme}://${credentials}${addresses}${path}`;
}

// A busy machine starts a dozen servers at the same time.
const PATIENCE = 5000;

/** Asks a Redis server something on a connection of its own, once, without retries. */
export async function askRedis<Answer>(
  port: number,
  access: { readonly password?: string | undefined; readonly certificate?: Certificate | undefined },
  ask: (client: Redis) => Promise<Answer>,
): Promise<Answer> {
  const client = new Redis({
    host: '127.0.0.1',
    port,
    lazyConnect: true,
    retryStrategy: null,
    maxRetriesPerRequest: 0,
    connectTimeout: PATIENCE,
    commandTimeout: PATIENCE,
    ...(access.password !== undefined && { password: access.password }),
    ...(access.certificate !== undefined && { tls: { ca: access.certificate.cert } }),
  });
  // Every failure also rejects what waits for it; without a listener the client would print it.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await ask(client);
  } finally {
    client.disconnect();
  }
}
