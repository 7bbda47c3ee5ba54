import { ConfigError, InvalidArgumentError } from '@holdfast/core';
import { describe, expect, test } from 'vitest';
import { zookeeperBackend } from './backend.js';
import { createBackend } from './module.js';
import { fromBackendOptions, readOptions } from './options.js';
import { rawClient } from './test-kit.js';

describe('a URL', () => {
  test('names one server or several, each with a port or the default one', () => {
    expect(readOptions({ url: 'zookeeper://h1' }).servers).toEqual([{ host: 'h1', port: 2181 }]);
    expect(readOptions({ url: 'zookeeper://h1:1,h2,[::1]:3,[fe80::1%eth0]/' }).servers).toEqual([
      { host: 'h1', port: 1 },
      { host: 'h2', port: 2181 },
      { host: '::1', port: 3 },
      { host: 'fe80::1%eth0', port: 2181 },
    ]);
  });

  test('has a chroot, percent-encoded, under which the prefix lies', () => {
    const rootOf = (url: string) => readOptions({ url }).root;
    expect(rootOf('zookeeper://h')).toBe('/holdfast');
    expect(rootOf('zookeeper://h/')).toBe('/holdfast');
    expect(rootOf('zookeeper://h/a/b/')).toBe('/a/b/holdfast');
    expect(rootOf('zookeeper://h/a%20b')).toBe('/a b/holdfast');
  });

  test('has a user and a password, percent-encoded, with which nodes are closed to others', () => {
    const { credentials, acl } = readOptions({ url: 'zookeeper://me:a%3Ab%40c@h' });
    expect(credentials).toEqual([{ scheme: 'digest', auth: Buffer.from('me:a:b@c') }]);
    expect(acl).toBe('creator');
    expect(readOptions({ url: 'zookeeper://h' })).toMatchObject({ credentials: [], acl: 'open' });
  });

  test.each([
    'zookeeper://',
    'zookeeper:///chroot',
    'zookeeper://h1,,h2',
    'zookeeper://h1:port',
    'zookeeper://h1:0',
    'zookeeper://h1:65536',
    'zookeeper://::1:2181',
    'zookeeper://h1/a/../b',
    'zookeeper://h1/%00',
    'zookeeper://h1/%zz',
    'zookeeper://u:%zz@h1',
    'zookeeper://h1?unknown=1',
    'redis://h1',
  ])('that cannot be used is a ConfigError: %s', (url) => {
    expect(() => zookeeperBackend({ url })).toThrow(ConfigError);
  });

  test('that is missing is a ConfigError that says what is expected', () => {
    expect(() => zookeeperBackend({})).toThrow(/zookeeper:\/\/\[user:password@\]host/);
  });

  test.each([
    'zookeeper://me:hunter2@',
    'zookeeper://me:hunter2@h 1',
    'zookeeper://me:hunter2@h1:x',
    'zookeeper://me:x@hunter2@h1',
    'zookeeper://me:hunter2%zz@h1',
    'zookeeper://me:hunter2@h1/..',
    'zookeeper://me:hunter2@h1?x',
  ])('never shows its password: %s', (url) => {
    let said = 'nothing';
    try {
      zookeeperBackend({ url });
    } catch (error) {
      said = `${error} ${(error as Error).cause ?? ''}`;
    }
    expect(said).toContain('ConfigError');
    expect(said).not.toContain('hunter2');
  });
});

describe('options', () => {
  const url = 'zookeeper://me:secret@h/from-url';

  test('go before what the URL says', () => {
    const { root, credentials } = readOptions({ url, chroot: 'own', auth: 'other:word', prefix: 'shop' });
    expect(root).toBe('/own/shop');
    expect(credentials).toEqual([{ scheme: 'digest', auth: Buffer.from('other:word') }]);
  });

  test('ask for a session in any form of a duration; ten seconds otherwise', () => {
    expect(readOptions({ url }).sessionTimeout).toBe(10_000);
    expect(readOptions({ url, sessionTimeout: '4s' }).sessionTimeout).toBe(4000);
    for (const sessionTimeout of [0, -1, Number.NaN, '4', 2 ** 31] as const)
      expect(() => readOptions({ url, sessionTimeout: sessionTimeout as number })).toThrow(
        InvalidArgumentError,
      );
  });

  test('refuse a prefix that is not one, and say what is', () => {
    for (const prefix of ['', '.', '..', 'a/b', 'a b', 'x'.repeat(65)])
      expect(() => readOptions({ url, prefix })).toThrow(/prefix.*A-Z a-z 0-9/);
    expect(readOptions({ url, prefix: 'a.b_c-D9' }).prefix).toBe('a.b_c-D9');
  });

  test('refuse to guess at who may touch the nodes', () => {
    expect(readOptions({ url, acl: 'open' }).acl).toBe('open');
    expect(() => readOptions({ url, acl: 'everyone' as 'open' })).toThrow(/acl.*"open" or "creator"/);
    expect(() => fromBackendOptions({ url, acl: 'everyone' })).toThrow(InvalidArgumentError);
  });

  test('close nodes to others only where there is somebody to open them to', () => {
    expect(() => readOptions({ url: 'zookeeper://h', acl: 'creator' })).toThrow(/acl.*"open", or a user/);
  });

  test('arrive from a configuration as they were written', () => {
    const given = { url, prefix: 'p', sessionTimeout: 4000, chroot: '/c', auth: 'a:b', acl: 'open' } as const;
    expect(fromBackendOptions(given)).toEqual(given);
    expect(createBackend({ url, prefix: 'shop' })).toMatchObject({ name: 'zookeeper', prefix: 'shop' });
  });
});

describe('a client that is handed in', () => {
  test('gives its servers, chroot, credentials and session timeout', () => {
    const client = rawClient('h1:1,h2:2/chroot', { sessionTimeout: 7000 });
    client.addAuthInfo('digest', Buffer.from('me:secret'));
    const settings = readOptions({ client });
    expect(settings.servers).toEqual(
      expect.arrayContaining([
        { host: 'h1', port: 1 },
        { host: 'h2', port: 2 },
      ]),
    );
    expect(settings).toMatchObject({
      root: '/chroot/holdfast',
      credentials: [{ scheme: 'digest', auth: Buffer.from('me:secret') }],
      acl: 'creator',
      sessionTimeout: 7000,
    });
    expect(readOptions({ client, sessionTimeout: '2s', chroot: '/', prefix: 'x' })).toMatchObject({
      root: '/x',
      sessionTimeout: 2000,
    });
  });

  test('and is another thing is refused', () => {
    for (const client of [{}, { getSessionTimeout: () => 1 }, 'h1:2181'])
      expect(() => readOptions({ client: client as never })).toThrow(/client.*node-zookeeper-client/);
  });
});
