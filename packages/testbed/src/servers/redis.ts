import { fromEnvironment } from './environment.js';
import type { ServerHandle, StartOptions } from './handle.js';
import { claimPort } from './ports.js';
import { startGroup } from './provide.js';
import { redisProcess, redisUrl } from './redis-process.js';
import { makeCertificate } from './tls.js';

/** How a Redis server is set up. Every option given means a server of the test's own. */
export interface RedisOptions extends StartOptions {
  /** `requirepass`: the password of the default user. Part of the handle's URL. */
  readonly password?: string;
  /** ACL users; the URL of the handle is the first one's. `rules` such as `~* &* +@all`. */
  readonly users?: readonly { readonly name: string; readonly password: string; readonly rules: string }[];
  /** TLS only, with a certificate for `127.0.0.1` and `localhost` that is its own authority. */
  readonly tls?: boolean;
  /** What survives a kill: nothing (default), or every write (`appendfsync always`). */
  readonly persistence?: 'none' | 'aof';
  /** Further directives of redis.conf, such as `{ 'maxmemory-policy': 'noeviction' }`. */
  readonly config?: Readonly<Record<string, string | number>>;
}

/** The authority to trust for a server that speaks TLS: PEM text, and the file that holds it. */
export interface TlsFiles {
  readonly ca: string;
  readonly caFile: string;
}

export interface RedisHandle extends ServerHandle {
  /** There when started with `tls`. */
  readonly tls?: TlsFiles;
}

/** One Redis server. URL `redis://…`, with TLS `rediss://…`. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisHandle> {
  const foreign = fromEnvironment('redis', options);
  if (foreign !== undefined) return foreign;
  const { password, users = [], persistence, config } = options;
  const port = await claimPort();
  const certificate = options.tls === true ? await makeCertificate() : undefined;
  const [first] = users;
  const url = redisUrl(`127.0.0.1:${port.number}`, {
    user: first?.name,
    password: first?.password ?? password,
    tls: certificate !== undefined,
  });
  const spec = redisProcess({
    server: 'redis',
    name: 'redis',
    port: port.number,
    url,
    password,
    certificate,
    persistence,
    config,
    lines: users.map((user) => `user ${user.name} on >${user.password} ${user.rules}`),
  });
  const handle = await startGroup({
    server: 'redis',
    url,
    specs: [spec],
    async release() {
      port.release();
      await certificate?.remove();
    },
  });
  if (certificate === undefined) return handle;
  return { ...handle, tls: { ca: certificate.cert, caFile: certificate.certFile } };
}
