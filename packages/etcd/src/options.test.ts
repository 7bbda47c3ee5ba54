import { ConfigError, InvalidArgumentError } from '@holdfast/core';
import { describe, expect, it } from 'vitest';
import { createBackend, etcdBackend } from './module.js';
import { targetOf } from './options.js';

describe('a client', () => {
  it('that is none of etcd3 is refused before anything is sent, and not shown', () => {
    const client = { kv: {}, leaseClient: {}, watchClient: {}, close: () => undefined, password: 'hunter2' };
    expect(() => etcdBackend({ client })).toThrow(InvalidArgumentError);
    expect(() => etcdBackend({ client })).toThrow(
      expect.not.stringContaining('hunter2') as unknown as string,
    );
  });
});

describe('a URL', () => {
  it('has one host or several, with a port or the default one', () => {
    expect(targetOf({ url: 'etcd://h1' }).hosts).toEqual(['h1:2379']);
    expect(targetOf({ url: 'etcd://h1:1,h2,h3:3/' }).hosts).toEqual(['h1:1', 'h2:2379', 'h3:3']);
    expect(targetOf({ url: 'etcd://[::1]:2,[fe80::1]' }).hosts).toEqual(['[::1]:2', '[fe80::1]:2379']);
  });

  it('has a user and a password, percent-encoded', () => {
    expect(targetOf({ url: 'etcd://me:a%3Ab%40c@h1,h2' })).toMatchObject({
      username: 'me',
      password: 'a:b@c',
    });
    expect(targetOf({ url: 'etcd://me@h1', password: 'secret' })).toMatchObject({ password: 'secret' });
  });

  it('speaks TLS where its scheme says so', () => {
    expect(targetOf({ url: 'etcd://h1' }).tls).toBe(false);
    expect(targetOf({ url: 'etcds://h1' }).tls).toBe(true);
  });

  it.each([
    'etcd://',
    'etcd://h1,,h2',
    'etcd://h1:port',
    'etcd://h1/path',
    'etcd://h1?unknown=1',
    'etcd://u:%zz@h1',
    'etcd://user@h1',
    'redis://h1',
  ])('that cannot be used is a ConfigError: %s', (url) => {
    expect(() => etcdBackend({ url })).toThrow(ConfigError);
  });

  it('never shows its password', () => {
    for (const url of [
      'etcd://me:hunter2@',
      'etcd://me:x@hunter2@h 1',
      'etcd://me:hunter2@h1/x',
      'etcd://me:hunter2@h 1',
      'etcd://me:hunter2%zz@h1',
    ]) {
      expect(() => etcdBackend({ url })).toThrow(expect.not.stringContaining('hunter2') as unknown as string);
    }
  });
});

describe('options', () => {
  it('take hosts instead of a URL', () => {
    expect(targetOf({ hosts: 'h1:1,h2' }).hosts).toEqual(['h1:1', 'h2:2379']);
    expect(targetOf({ hosts: ['https://h1:1', 'https://h2'] })).toMatchObject({
      hosts: ['h1:1', 'h2:2379'],
      tls: true,
    });
    expect(() => targetOf({ hosts: ['https://h1', 'h2'] })).toThrow(InvalidArgumentError);
    expect(() => targetOf({ hosts: [] })).toThrow(InvalidArgumentError);
    expect(() => targetOf({ hosts: 'h1', url: 'etcd://h1' })).toThrow(InvalidArgumentError);
  });

  it('take a certificate with its key only', () => {
    expect(() => targetOf({ hosts: 'h1', cert: '-----BEGIN CERTIFICATE-----' })).toThrow(ConfigError);
  });

  it('name a certificate file that cannot be read', () => {
    expect(() => targetOf({ hosts: 'h1', ca: '/no/such/file.pem' })).toThrow(/etcd\.ca.*no\/such\/file/);
  });

  it('refuse a prefix that is not one', () => {
    for (const prefix of ['', 'a/b', 'a b', 'x'.repeat(65)])
      expect(() => etcdBackend({ hosts: 'h1', prefix })).toThrow(InvalidArgumentError);
  });

  it('make a backend that says whose it is', () => {
    expect(createBackend({ url: 'etcd://h1', prefix: 'shop' })).toMatchObject({
      name: 'etcd',
      prefix: 'shop',
    });
    expect(etcdBackend({ hosts: 'h1' }).prefix).toBe('holdfast');
  });
});
