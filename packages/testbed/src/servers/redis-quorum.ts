import { fromEnvironment } from './environment.js';
import type { ServerHandle } from './handle.js';
import { claimPorts } from './ports.js';
import { startGroup } from './provide.js';
import type { RedisOptions } from './redis.js';
import { redisProcess, redisUrl } from './redis-process.js';

export interface RedisQuorumOptions extends Omit<RedisOptions, 'users' | 'tls'> {
  /** Default 5. */
  readonly servers?: number;
}

/** Independent servers. URL `redis+quorum://h1,h2,h3,h4,h5`. */
export async function startRedisQuorum(options: RedisQuorumOptions = {}): Promise<ServerHandle> {
  const foreign = fromEnvironment('redis-quorum', options);
  if (foreign !== undefined) return foreign;
  const { servers = 5, password, persistence, config } = options;
  const ports = await claimPorts(servers);
  const specs = ports.numbers.map((port, index) =>
    redisProcess({
      server: 'redis-quorum',
      name: `redis-${index + 1}`,
      port,
      password,
      persistence,
      config,
    }),
  );
  return startGroup({
    server: 'redis-quorum',
    url: redisUrl(ports.addresses, { scheme: '+quorum', password }),
    specs,
    release: () => ports.release(),
  });
}
