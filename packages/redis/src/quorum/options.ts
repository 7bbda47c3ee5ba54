import { ConfigError } from '@holdfast/core';
import type { AnyClient } from '../client.js';
import { parseUrl, type RedisBackendOptions, type SingleTopology, topologyOf } from '../options.js';

/** How `redisQuorumBackend` is made. */
export interface RedisQuorumOptions {
  /** `redis+quorum://h1,h2,h3` or `rediss+quorum://…`: three or more servers that know nothing of each other. */
  readonly url?: string;
  /** Clients of ioredis, one for each server, instead of a URL. We connect as they do, and neither close nor change them. */
  readonly clients?: readonly AnyClient[];
  /** Isolates tenants: 1 to 64 of `A-Z a-z 0-9 . _ -`. Default `holdfast`. */
  readonly prefix?: string;
  /** The longest ttl that any client of this prefix may use, ms. The same for all of them. Default 30,000. */
  readonly maxTtl?: number;
  /**
   * How long a server keeps out of votes after its start, or after it was emptied, ms: it may have forgotten a vote. A
   * server that is new to this prefix looks like one that was emptied. Default `maxTtl`. 0 only where no server forgets
   * anything at a restart (`appendfsync always`) and nobody empties one.
   */
  readonly restartGrace?: number;
  /** How long one server may take to answer, ms. Default half the time that a request may take. */
  readonly serverTimeout?: number;
  readonly db?: number;
  readonly username?: string;
  readonly password?: string;
  readonly tls?: object;
}

export const DEFAULT_MAX_TTL = 30_000;

const FEWEST = 3;

/**
 * One topology for each server.
 *
 * @throws ConfigError, InvalidArgumentError
 */
export function serversOf(given: RedisQuorumOptions): readonly SingleTopology[] {
  const servers = given.clients === undefined ? ofUrl(given) : ofClients(given);
  if (servers.length < FEWEST) {
    throw new ConfigError(`redis+quorum: ${servers.length} servers are no quorum: name three, five or seven`);
  }
  return servers;
}

function ofClients({ clients = [], url }: RedisQuorumOptions): SingleTopology[] {
  if (url !== undefined) throw new ConfigError('redis+quorum: give a url or clients, not both');
  return clients.map((client) => single({ client }));
}

function ofUrl({ url, ...given }: RedisQuorumOptions): SingleTopology[] {
  if (url === undefined)
    throw new ConfigError('redis+quorum: url is missing (such as redis+quorum://h1,h2,h3)');
  const { secure, hosts, path, username, password, query } = parseUrl(url);
  const scheme = secure ? 'rediss' : 'redis';
  const credentials = {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
  };
  const names = hosts.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`);
  if (new Set(names).size < names.length) {
    throw new ConfigError('redis+quorum: the same server is named twice; it would vote twice');
  }
  const rest = `${path.length === 0 ? '' : `/${path.join('/')}`}${query.size === 0 ? '' : `?${query}`}`;
  return names.map((name) => single({ ...credentials, ...given, url: `${scheme}://${name}${rest}` }));
}

function single(given: RedisBackendOptions): SingleTopology {
  const topology = topologyOf(given);
  if (topology.kind === 'single') return topology;
  throw new ConfigError(`redis+quorum: each of its servers is a single one, not a ${topology.kind}`);
}
