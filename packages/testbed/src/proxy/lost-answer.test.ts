/// <reference path="./node-zookeeper-client.d.ts" />
import { noop } from 'cockatiel';
import { Etcd3 } from 'etcd3';
import { Redis } from 'ioredis';
import { createConnection } from 'mysql2/promise';
import { createClient } from 'node-zookeeper-client';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { startEtcd } from '../servers/etcd.js';
import { startMariaDb } from '../servers/mysql.js';
import { startPostgres } from '../servers/postgres.js';
import { startRedis } from '../servers/redis.js';
import { startZooKeeper } from '../servers/zookeeper.js';
import { http2Answer, redisCommand, zooKeeperRequest } from './matchers.js';
import { startProxy } from './proxy.js';

/** etcd3's own policies would send the request again. */
const NO_RETRIES = { faultHandling: { global: noop, host: () => noop } };

/** Each through the raw client: the server has the effect, the client an error, and only that one answer is lost. */
describe.concurrent('exactly one answer of one chosen command is lost', { timeout: 90_000 }, () => {
  test('Redis', async () => {
    await using redis = await startRedis();
    await using proxy = await startProxy({ target: redis.node });
    const client = new Redis(proxy.url, { retryStrategy: () => 10, maxRetriesPerRequest: 0 });
    client.on('error', () => undefined);
    const increment = () => client.eval("return redis.call('INCR', KEYS[1])", 1, 'count');

    const lost = proxy.dropAnswerTo(redisCommand('eval'));
    expect(await client.set('other', 'first')).toBe('OK');
    await expect(increment()).rejects.toThrow();
    expect(await increment()).toBe(2);
    expect(lost.hits).toBe(1);
    client.disconnect();
  });

  test('etcd', async () => {
    await using etcd = await startEtcd();
    await using proxy = await startProxy({ target: etcd.node });
    const client = new Etcd3({ hosts: `http://${proxy.address}`, ...NO_RETRIES });

    const lost = proxy.dropAnswerTo('chosen', { answer: http2Answer });
    await client.put('other').value('first');
    await expect(client.put('chosen').value('lost')).rejects.toThrow();
    expect(await client.get('chosen').string()).toBe('lost');
    expect(lost.hits).toBe(1);
    client.close();
  });

  test('ZooKeeper', async () => {
    await using server = await startZooKeeper();
    await using proxy = await startProxy({ target: server.node });
    const client = createClient(proxy.address, { sessionTimeout: 4000, retries: 0 });
    const connected = new Promise((resolve) => client.once('connected', resolve));
    client.connect();
    await connected;
    const create = (path: string) =>
      new Promise((resolve, reject) =>
        client.create(path, (error, made) => (error ? reject(error) : resolve(made))),
      );

    const lost = proxy.dropAnswerTo(zooKeeperRequest('create', '/chosen'));
    expect(await create('/other')).toBe('/other');
    const again = new Promise((resolve) => client.once('connected', resolve));
    await expect(create('/chosen')).rejects.toThrow('CONNECTION_LOSS');
    await again;
    await expect(create('/chosen')).rejects.toThrow('NODE_EXISTS');
    expect(lost.hits).toBe(1);
    client.close();
  });

  test('PostgreSQL', async () => {
    await using postgres = await startPostgres();
    await using proxy = await startProxy({ target: postgres.node });
    const connect = async () => {
      const client = new pg.Client(proxy.url);
      client.on('error', () => undefined);
      await client.connect();
      return client;
    };
    const first = await connect();
    await first.query('CREATE TABLE counts (name text PRIMARY KEY, value int)');

    const lost = proxy.dropAnswerTo('INSERT INTO counts');
    await expect(first.query("INSERT INTO counts VALUES ('chosen', 1)")).rejects.toThrow();
    const second = await connect();
    expect((await second.query('SELECT value FROM counts')).rows).toEqual([{ value: 1 }]);
    await second.query("INSERT INTO counts VALUES ('next', 2)");
    expect(lost.hits).toBe(1);
    await second.end();
  });

  test('MariaDB', async () => {
    await using mariadb = await startMariaDb();
    await using proxy = await startProxy({ target: mariadb.node });
    const connect = () => createConnection(proxy.url.replace('mariadb:', 'mysql:'));
    const first = await connect();
    await first.query('CREATE TABLE counts (name varchar(20) PRIMARY KEY, value int)');

    const lost = proxy.dropAnswerTo('INSERT INTO counts');
    await expect(first.query("INSERT INTO counts VALUES ('chosen', 1)")).rejects.toThrow();
    const second = await connect();
    expect((await second.query('SELECT value FROM counts'))[0]).toEqual([{ value: 1 }]);
    await second.query("INSERT INTO counts VALUES ('next', 2)");
    expect(lost.hits).toBe(1);
    await second.end();
    first.destroy();
  });
});
