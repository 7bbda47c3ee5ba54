import { readFileSync } from 'node:fs';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { BackendModule, BackendOptions, LockBackend } from '../backend.js';
import { memoryBackend } from '../memory/backend.js';
import type { HoldfastConfig } from './config.js';
import { resolveConnection } from './resolve.js';

/** A backend module that remembers what it was given; its locks are the memory backend's. */
function recorder(
  module: Omit<BackendModule, 'createBackend'>,
): BackendModule & { readonly given: BackendOptions[] } {
  const given: BackendOptions[] = [];
  return {
    ...module,
    given,
    createBackend(options): LockBackend {
      given.push(options);
      return memoryBackend();
    },
  };
}

const consul = () =>
  recorder({
    schemes: ['consul', 'consul+tls'],
    options: {
      minReplicas: 'integer',
      tls: 'boolean',
      session: 'duration',
      token: 'string',
      agent: 'object',
    },
    driverParameters: ['sslmode'],
  });

async function failure(config: unknown, module?: BackendModule): Promise<unknown> {
  const backends = module === undefined ? {} : { backends: [module] };
  return resolveConnection(config as HoldfastConfig, backends).then(
    () => expect.unreachable('it was accepted'),
    (error: unknown) => error,
  );
}

describe('a URL', () => {
  it('gives the backend its options in their types, and leaves the driver its own', async () => {
    const module = consul();
    await resolveConnection(
      'consul://u%40:p%2F@h1:8500,h2:8500/path?prefix=shop&sslmode=require&minReplicas=2&tls=true&session=1.5s',
      { backends: [module] },
    );
    expect(module.given).toEqual([
      {
        url: 'consul://u%40:p%2F@h1:8500,h2:8500/path?sslmode=require',
        prefix: 'shop',
        minReplicas: 2,
        tls: true,
        session: 1500,
      },
    ]);
  });

  it('is taken as a URL object, and with its scheme in capitals', async () => {
    const module = consul();
    await resolveConnection(new URL('consul://h?prefix=a'), { backends: [module] });
    await resolveConnection('CONSUL://H', { backends: [module] });
    expect(module.given).toEqual([{ url: 'consul://h', prefix: 'a' }, { url: 'consul://H' }]);
  });

  it.each([
    ['an unknown parameter, with the nearest', 'consul://h?minReplica=1', 'did you mean "minReplicas"?'],
    ['an option of the wrong type', 'consul://h?minReplicas=many', 'minReplicas must be a whole number'],
    ['a bad duration', 'consul://h?session=-1s', 'session must be milliseconds'],
    ['a bad prefix', 'consul://h?prefix=a/b', 'prefix must be 1 to 64 of'],
    ['an option given twice', 'consul://h?tls=1&tls=0', 'tls twice'],
    ['a scheme that nobody has, with the nearest', 'consol://h', 'did you mean "consul"?'],
    ['a parameter that is no name', 'consul://h?a@b=1', 'has an unknown parameter;'],
    ['no scheme', 'localhost', 'has no known scheme'],
    ['nothing', '', 'has no known scheme'],
    ['a slip in one of ours', 'sqllite:./x', 'did you mean "sqlite"?'],
    ['a name for memory', 'memory:shop', 'memory: takes no name'],
    ['a parameter that memory does not have', 'memory:?ttl=5s', 'unknown parameter "ttl"'],
  ])('with %s is a ConfigError that says so', async (_what, url, message) => {
    const module = consul();
    expect(await failure(url, module)).toMatchObject({
      code: 'CONFIG',
      message: expect.stringContaining(message),
    });
    expect(module.given).toEqual([]);
  });

  it('never shows its password in an error', async () => {
    for (const url of [
      'consul://user:hunter2@h?nope=hunter2',
      'consul://user:hunter2@h?minReplicas=hunter2',
      'hunter2:hunter2@h',
      'cnsl://:hunter2@h',
    ]) {
      const error = (await failure(url, consul())) as Error;
      expect(`${error.message} ${error.stack} ${String(error.cause)}`).not.toContain('hunter2');
    }
  });
});

describe('a URL of one of ours', () => {
  /** A module that takes the place of a package of ours. */
  const ours = (scheme: string) => ({ ...consul(), schemes: [scheme] });
  const urlOf = async (url: string): Promise<unknown> => {
    const module = ours('redis');
    await resolveConnection(url, { backends: [module] });
    return module.given[0]?.url;
  };

  it.each([
    ['a slash', 'SCHEME://user:hunter2/x@h:1'],
    ['a slash after digits', 'SCHEME://user:12/hunter2@h:1'],
    ['a question mark', 'SCHEME://user:x?hunter2@h:1'],
    ['a question mark after digits', 'SCHEME://user:12?hunter2@h:1'],
    ['a hash', 'SCHEME://user:x#hunter2@h:1'],
    ['a broken percent escape', 'SCHEME://user:hunter2%zz@h:1'],
    ['an escape that is no UTF-8', 'SCHEME://user:hunter2%ff@h:1'],
    ['no host behind it', 'SCHEME://user:hunter2'],
    ['no host and no user', 'SCHEME://:hunter2'],
    ['a host with a space', 'SCHEME://user:hunter2@h hunter2:1'],
    ['a bracket that stays open', 'SCHEME://user:hunter2@[::1/x'],
  ])('with %s in the password is a ConfigError that shows nothing of it', async (_what, shape) => {
    for (const scheme of ['redis', 'etcd', 'zookeeper', 'postgres', 'mysql', 'redis+sentinel']) {
      const module = ours(scheme);
      const error = (await failure(shape.replace('SCHEME', scheme), module)) as Error;
      expect(error).toMatchObject({ code: 'CONFIG', message: expect.stringContaining('the URL given') });
      expect(inspect(error, { depth: 9 })).not.toContain('hunter2');
      expect(module.given).toEqual([]);
    }
  });

  it.each([
    [
      'several hosts',
      'redis://u:p@h1:1,h_2,[fe80::1%25eth0]:3/x',
      'redis://u:p@h1:1,h_2,[fe80::1%25eth0]:3/x',
    ],
    ['no host', 'redis:///x', 'redis:///x'],
    ['escapes in the password', 'redis://:a%2F%40@h', 'redis://:a%2F%40@h'],
    ['an @ in the password, as parsers of the web read it', 'redis://u:a@b@h/x', 'redis://u:a%40b@h/x'],
    ['an @ in the path', 'redis://u:p@h/x@y', 'redis://u:p@h/x@y'],
    ['white space around it, as from a file', ' redis://h\n', 'redis://h'],
  ])('may have %s', async (_what, url, given) => {
    expect(await urlOf(url)).toBe(given);
  });
});

describe('an object', () => {
  it('gives its section to the backend, its URL split, and the rest to the locks', async () => {
    const module = consul();
    const { options } = await resolveConnection(
      {
        backend: '@acme/holdfast-consul',
        '@acme/holdfast-consul': {
          url: 'consul://h?minReplicas=1',
          prefix: 'shop',
          session: '2s',
          tls: 'false',
        },
        defaults: { ttl: '20s', wait: '1m', renew: true },
        fenceOffset: '9007199254740993',
        unavailableAfter: '90s',
        commandTimeout: 1000,
      },
      { backends: [module] },
    );
    expect(module.given).toEqual([
      { url: 'consul://h', minReplicas: 1, prefix: 'shop', session: 2000, tls: false },
    ]);
    expect(options).toEqual({
      defaults: { ttl: 20_000, wait: 60_000, renew: true },
      fenceOffset: 9007199254740993n,
      unavailableAfter: 90_000,
      commandTimeout: 1000,
    });
  });

  it('may leave the section out, and may keep the sections of other backends', async () => {
    const others = { redis: { url: 'redis://h' }, '@acme/holdfast-consul': { url: 'consul://h' } };
    const { backend } = await resolveConnection({ backend: 'memory', ...others }, {});
    expect(backend.name).toBe('memory');
  });

  it.each<[string, unknown, string]>([
    ['an unknown key', { backend: 'memory', default: {} }, 'default is not known (did you mean "defaults"?)'],
    [
      'an unknown default',
      { backend: 'memory', defaults: { tll: 1 } },
      'defaults.tll is not known (did you mean "ttl"?)',
    ],
    [
      'an unknown option',
      { backend: 'memory', memory: { prefx: 'a' } },
      'memory.prefx is not known (did you mean "prefix"?)',
    ],
    ['a bad ttl', { backend: 'memory', defaults: { ttl: 0 } }, 'defaults.ttl must be milliseconds'],
    ['a ttl above a year', { backend: 'memory', defaults: { ttl: '366d' } }, 'at most 365 days'],
    ['a bad wait', { backend: 'memory', defaults: { wait: null } }, 'defaults.wait must be milliseconds'],
    ['a bad offset', { backend: 'memory', fenceOffset: 1.5 }, 'fenceOffset must be a whole number'],
    ['an offset above 2^62', { backend: 'memory', fenceOffset: 2n ** 62n + 1n }, 'from 0 to 2^62'],
    ['an offset below 0', { backend: 'memory', fenceOffset: '-1' }, 'from 0 to 2^62'],
    ['a rounded offset', { backend: 'memory', fenceOffset: 2 ** 53 }, 'above 2^53 write it as a string'],
    ['no backend', { redis: { url: 'redis://h' } }, 'backend is missing'],
    ['a slip in the backend', { backend: 'reddis' }, 'did you mean "redis"?'],
    ['a path as the backend', { backend: './evil.js' }, 'backend must be one of'],
    [
      'another backend’s URL',
      { backend: 'redis', redis: { url: 'etcd://h' } },
      'redis.url is not for the backend redis',
    ],
    ['a section that is no object', { backend: 'memory', memory: 'shop' }, 'memory must be an object'],
    ['SQL without a URL', { backend: 'postgres' }, 'postgres.url is missing'],
    ['a list', [], 'must hold an object'],
  ])('with %s is a ConfigError naming the path', async (_what, config, message) => {
    expect(await failure(config, recorder({ schemes: ['etcd', 'redis', 'postgres'] }))).toMatchObject({
      code: 'CONFIG',
      message: expect.stringContaining(message),
    });
  });

  it('with an option both in the section and in the URL is a ConfigError', async () => {
    const config = { backend: 'consul', consul: { url: 'consul://h?prefix=a', prefix: 'b' } };
    expect(await failure(config, consul())).toMatchObject({
      code: 'CONFIG',
      message: expect.stringContaining('consul.prefix is also a parameter of the URL'),
    });
  });

  it('takes a key that is undefined for one that is left out', async () => {
    const module = consul();
    const { options } = await resolveConnection(
      {
        backend: 'consul',
        consul: { url: 'consul://h', tls: undefined },
        defaults: { ttl: undefined },
        fenceOffset: undefined,
      } as unknown as HoldfastConfig,
      { backends: [module] },
    );
    expect(module.given).toEqual([{ url: 'consul://h' }]);
    expect([module.given[0], options, options.defaults].flatMap((each) => Object.keys(each ?? {}))).toEqual([
      'url',
      'defaults',
    ]);
  });

  it.each([
    ['minReplicas', ['hunter2'], 'a whole number'],
    ['minReplicas', 1.5, 'a whole number'],
    ['tls', 'hunter2', 'true or false'],
    ['session', 'hunter2', 'milliseconds'],
    ['session', {}, 'milliseconds'],
    ['token', { hunter2: 'hunter2' }, 'a string'],
    ['agent', 'hunter2', 'an object'],
    ['url', ['hunter2'], 'a URL'],
    ['prefix', 'hunter2/hunter2', '1 to 64 of'],
  ])('says what %s may be, and not that it was %j', async (option, value, allowed) => {
    const { message } = (await failure(
      { backend: 'consul', consul: { [option]: value } },
      consul(),
    )) as Error;
    expect(message).toContain(`consul.${option} must be ${allowed}`);
    expect(message).not.toContain('hunter2');
  });

  it('never shows a value in an error', async () => {
    const config = {
      backend: 'consul',
      consul: { url: 'consul://:hunter2@h', minReplicas: 'hunter2' },
    };
    expect(((await failure(config, consul())) as Error).message).not.toContain('hunter2');
  });
});

it.each([42, null, true])('%s instead of a configuration is an InvalidArgumentError', async (config) => {
  expect(await failure(config)).toMatchObject({ code: 'INVALID_ARGUMENT' });
});

it('something else than a module among the backends is an InvalidArgumentError', async () => {
  expect(await failure('memory:', {} as BackendModule)).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('backends[0]'),
  });
});

describe('the published schema', () => {
  const schema = JSON.parse(readFileSync(new URL('../../schema.json', import.meta.url), 'utf8'));

  it.each([
    ['at the top', { zzzzzzzzzzz: 1 }, schema],
    ['in defaults', { defaults: { zzzzzzzzzzz: 1 } }, schema.properties.defaults],
  ])('has the keys that are known %s', async (_where, config, { properties }) => {
    const error = await failure({ backend: 'memory', ...config });
    const known = /allowed: (.*)$/.exec((error as Error).message)?.[1]?.split(', ') ?? [];
    expect(known.sort()).toEqual(Object.keys(properties).sort());
  });
});
