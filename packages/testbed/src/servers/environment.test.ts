import { afterEach, expect, test, vi } from 'vitest';
import { addressesIn, fromEnvironment, variableOf } from './environment.js';
import { type RedisOptions, startRedis } from './redis.js';
import { skipped } from './skip.js';

afterEach(() => vi.unstubAllEnvs());

test('a URL in the environment comes first', async () => {
  vi.stubEnv('HOLDFAST_TEST_REDIS_URL', 'redis://:secret@db.example:7000/2');
  const redis = await startRedis();
  expect(redis.provider).toBe('environment');
  expect(redis.url).toBe('redis://:secret@db.example:7000/2');
  expect(redis.node).toMatchObject({ host: 'db.example', port: 7000, address: 'db.example:7000' });
});

test('a test that changes its server gets one of its own', () => {
  vi.stubEnv('HOLDFAST_TEST_REDIS_URL', 'redis://db.example');
  expect(fromEnvironment('redis', { own: true })).toBeUndefined();
  const options: RedisOptions = { password: 'secret' };
  expect(fromEnvironment('redis', options)).toBeUndefined();
});

test('a server of somebody else cannot be killed, and the error says what to do', async () => {
  vi.stubEnv('HOLDFAST_TEST_REDIS_CLUSTER_URL', 'redis+cluster://a:1,b:2');
  const cluster = fromEnvironment('redis-cluster', {});
  expect(cluster?.nodes.map((node) => node.url)).toEqual(['redis+cluster://a:1', 'redis+cluster://b:2']);
  await expect(cluster?.node.kill()).rejects.toThrow(/HOLDFAST_TEST_REDIS_CLUSTER_URL.*own: true/s);
});

test('every host of a URL is found, with its port or the usual one', () => {
  expect(addressesIn('etcd://root:p%40@h1:1,[::1]:2,h3/x?y=1', 2379)).toEqual([
    { host: 'h1', port: 1, url: 'etcd://root:p%40@h1:1/x?y=1' },
    { host: '[::1]', port: 2, url: 'etcd://root:p%40@[::1]:2/x?y=1' },
    { host: 'h3', port: 2379, url: 'etcd://root:p%40@h3:2379/x?y=1' },
  ]);
});

test('the names of variables follow the names of servers', () => {
  expect(variableOf('redis')).toBe('HOLDFAST_TEST_REDIS_URL');
  expect(variableOf('zookeeper-cluster')).toBe('HOLDFAST_TEST_ZOOKEEPER_CLUSTER_URL');
});

test('only what is named is skipped, families as a whole', () => {
  const environment = { HOLDFAST_TEST_SKIP: 'redis, mysql' };
  expect(skipped('redis-cluster', environment)).toBe(true);
  expect(skipped('mysql', environment)).toBe(true);
  expect(skipped('etcd', environment)).toBe(false);
  expect(skipped('redis', {})).toBe(false);
  expect(skipped('redis', { HOLDFAST_TEST_SKIP: 'redis-cluster' })).toBe(false);
});
