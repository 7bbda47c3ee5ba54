import { describe, expect, it } from 'vitest';
import { createBackend } from './module.js';
import { serverIn, settingsOf, sqlitePath } from './options.js';

describe('the path in a sqlite URL', () => {
  it.each([
    ['sqlite:./locks.db', './locks.db'],
    ['sqlite:locks.db', 'locks.db'],
    ['sqlite:/var/lib/locks.db', '/var/lib/locks.db'],
    ['sqlite:///var/lib/locks.db', '/var/lib/locks.db'],
    ['sqlite:./my%20locks.db?prefix=x', './my locks.db'],
  ])('%s is %s', (url, path) => {
    expect(sqlitePath(url)).toBe(path);
  });

  it.each(['sqlite:', 'sqlite://', 'sqlite::memory:', 'sqlite:./100%.db'])('%s is a ConfigError', (url) => {
    expect(() => sqlitePath(url)).toThrowError(expect.objectContaining({ code: 'CONFIG' }));
  });
});

describe('options', () => {
  it.each([
    [{ prefix: 'a b' }, 'prefix'],
    [{ prefix: '' }, 'prefix'],
    [{ table: 'Locks' }, 'table'],
    [{ table: 'x; DROP TABLE y' }, 'table'],
    [{ retention: -1 }, 'retention'],
    [{ sweepEvery: Number.NaN }, 'sweepEvery'],
    [{ journal: 'memory' as 'wal' }, 'journal'],
  ])('%o is a ConfigError that names %s', (given, name) => {
    expect(() => settingsOf(given)).toThrowError(
      expect.objectContaining({ code: 'CONFIG', message: expect.stringContaining(`${name} is`) }),
    );
  });

  it.each([
    ['mysql://h/d?sslmode=require', 'sslmode'],
    ['mariadb://h/d?charset=utf8mb4&sslrootcert=ca.pem', 'sslrootcert'],
    ['mysql://h/d?ssl=true', 'ssl'],
    ['postgres://h/d?compress=true', 'compress'],
  ])('%s is a ConfigError, since the driver would pass over %s', (url, name) => {
    expect(() => createBackend({ url })).toThrowError(
      expect.objectContaining({ code: 'CONFIG', message: expect.stringContaining(`URL's ${name}`) }),
    );
  });

  it.each(['mysql://h/d?ssl={"ca":"x"}', 'postgres://h/d?sslmode=verify-full&ssl=true', 'postgresql://h/d'])(
    '%s is heeded by its driver',
    (url) => expect(createBackend({ url })).toBeDefined(),
  );

  it('a pool needs a connection', () => {
    expect(() => createBackend({ url: 'postgres://h/d', pool: 0 })).toThrowError(/pool is 0/);
  });
});

describe('what messages say of a server', () => {
  it('shows no user and no password', () => {
    const url = 'postgres://me:secret@db.example:5433/shop?sslmode=require';
    expect(serverIn(url, 'PostgreSQL')).toBe('PostgreSQL at db.example:5433/shop');
  });

  it('does not repeat a URL that cannot be read', () => {
    expect(() => serverIn('postgres://me:sec/ret@[x', 'PostgreSQL')).toThrowError(
      expect.objectContaining({ code: 'CONFIG', message: expect.not.stringContaining('sec') }),
    );
  });
});
