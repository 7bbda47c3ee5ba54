import { randomUUID } from 'node:crypto';
import { Verrou } from '@verrou/core';
import { redisStore } from '@verrou/core/drivers/redis';
import { Redis } from 'ioredis';
import { Mutex } from 'redis-semaphore';
import Redlock from 'redlock';
import type { Subject } from '../subject.js';
import { holdfast } from './holdfast.js';

const COMPARE_AND_DELETE = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`;

interface Scripted extends Redis {
  compareAndDelete(key: string, value: string): Promise<number>;
  nothing(key: string): Promise<unknown>;
}

function scripted(url: string): Scripted {
  const client = new Redis(url);
  client.defineCommand('compareAndDelete', { numberOfKeys: 1, lua: COMPARE_AND_DELETE });
  client.defineCommand('nothing', { numberOfKeys: 1, lua: "return redis.call('GET', KEYS[1])" });
  return client as Scripted;
}

/** SET NX PX and a compare-and-delete script: no queue, no fencing, no waiting. */
const raw: Subject = {
  name: 'raw SET NX PX + script',
  backend: 'redis',
  kind: 'floor',
  waits: false,
  async open(url) {
    const client = scripted(url);
    return {
      async acquire(name) {
        const owner = randomUUID();
        const key = `raw:${name}`;
        if ((await client.set(key, owner, 'PX', 30_000, 'NX')) === null) throw new Error('contended');
        return () => client.compareAndDelete(key, owner);
      },
      probe: () => client.nothing('raw:probe'),
      close: () => client.quit(),
    };
  },
};

const redlock: Subject = {
  name: 'redlock',
  backend: 'redis',
  kind: 'peer',
  waits: true,
  async open(url) {
    const client = new Redis(url);
    // Its defaults, but for the number of tries: with ten it gives up under contention.
    const lock = new Redlock([client], { retryCount: -1 });
    return {
      async acquire(name, ttl = 30_000) {
        const held = await lock.acquire([`redlock:${name}`], ttl);
        return () => held.release();
      },
      close: () => client.quit(),
    };
  },
};

const redisSemaphore: Subject = {
  name: 'redis-semaphore',
  backend: 'redis',
  kind: 'peer',
  waits: true,
  async open(url) {
    const client = new Redis(url);
    return {
      async acquire(name, ttl) {
        const mutex = new Mutex(client, `semaphore:${name}`, {
          acquireTimeout: 60_000,
          ...(ttl === undefined ? {} : { lockTimeout: ttl }),
        });
        await mutex.acquire();
        return () => mutex.release();
      },
      close: () => client.quit(),
    };
  },
};

const verrou: Subject = {
  name: '@verrou/core',
  backend: 'redis',
  kind: 'peer',
  waits: true,
  async open(url) {
    const client = new Redis(url);
    const locks = new Verrou({
      default: 'redis',
      stores: { redis: { driver: redisStore({ connection: client }) } },
    });
    return {
      async acquire(name, ttl = 30_000) {
        const lock = locks.createLock(`verrou:${name}`, ttl);
        if (!(await lock.acquire())) throw new Error('not acquired');
        return () => lock.release();
      },
      close: () => client.quit(),
    };
  },
};

/** The servers of a quorum, each by its URL. */
function serversOf(url: string): string[] {
  const hosts = url.replace('redis+quorum://', '').split(',');
  return hosts.map((host) => `redis://${host}`);
}

/** The same calls on every server at once, and a majority counted. */
const rawQuorum: Subject = {
  name: 'raw SET NX PX + script on each',
  backend: 'redis-quorum',
  kind: 'floor',
  waits: false,
  async open(url) {
    const clients = serversOf(url).map(scripted);
    return {
      async acquire(name) {
        const owner = randomUUID();
        const key = `raw:${name}`;
        const taken = await Promise.all(clients.map((client) => client.set(key, owner, 'PX', 30_000, 'NX')));
        if (taken.filter((answer) => answer !== null).length <= clients.length / 2)
          throw new Error('contended');
        return () => Promise.all(clients.map((client) => client.compareAndDelete(key, owner)));
      },
      probe: () => Promise.all(clients.map((client) => client.nothing('raw:probe'))),
      close: () => Promise.all(clients.map((client) => client.quit())),
    };
  },
};

const quorumRedlock: Subject = {
  ...redlock,
  backend: 'redis-quorum',
  // It waits by asking all five servers again after a pause: fifty of it keep each other from every majority for minutes.
  waits: false,
  async open(url) {
    const clients = serversOf(url).map((server) => new Redis(server));
    const lock = new Redlock(clients, { retryCount: -1 });
    return {
      async acquire(name, ttl = 30_000) {
        const held = await lock.acquire([`redlock:${name}`], ttl);
        return () => held.release();
      },
      close: () => Promise.all(clients.map((client) => client.quit())),
    };
  },
};

export const redis = [raw, holdfast('redis'), redlock, redisSemaphore, verrou];
// The servers are new: they have forgotten nothing, and need not keep out for a minute.
export const redisQuorum = [rawQuorum, holdfast('redis-quorum', '?restartGrace=0ms'), quorumRedlock];
