import type { ServerClock } from '../processes/clock.js';
import { fromEnvironment } from './environment.js';
import type { ServerHandle } from './handle.js';
import { claimPorts } from './ports.js';
import { startGroup } from './provide.js';
import type { RedisOptions } from './redis.js';
import { redisProcess, redisUrl } from './redis-process.js';

export interface RedisQuorumOptions extends Omit<RedisOptions, 'users' | 'tls' | 'clock'> {
  /** Default 5. */
  readonly servers?: number;
  /** A clock for each server that is to have one of its own, by index. */
  readonly clocks?: readonly (ServerClock | undefined)[];
}

/** Independent servers. URL `redis+quorum://h1,h2,h3,h4,h5`. */
export async function startRedisQuorum(options: RedisQuorumOptions = {}): Promise<ServerHandle> {
  const foreign = fromEnvironment('redis-quorum', options);
  if (foreign !== undefined) return foreign;
  const { servers = 5, password, persistence, config, clocks = [] } = options;
  const ports = await claimPorts(servers);
  const specs = ports.numbers.map((port, index) =>
    redisProcess({
      server: 'redis-quorum',
      name: `redis-${index + 1}`,
      port,
      password,
      persistence,
      config,
      clock: clocks[index],
    }),
  );
  return startGroup({
    server: 'redis-quorum',
    url: redisUrl(ports.addresses, { scheme: '+quorum', password }),
    specs,
    where: clocks.some((clock) => clock !== undefined) ? 'local' : 'anywhere',
    release: () => ports.release(),
  });
}
