import { expect, it } from 'vitest';
import { parseUrl, topologyOf } from './options.js';

it.each([
  ['redis://', { hosts: [{ host: '127.0.0.1', port: 6379 }], secure: false, path: [] }],
  ['redis://h', { hosts: [{ host: 'h', port: 6379 }] }],
  ['rediss://h:7000/3', { hosts: [{ host: 'h', port: 7000 }], secure: true, path: ['3'] }],
  ['redis://[::1]:7000', { hosts: [{ host: '::1', port: 7000 }] }],
  ['redis://u%40x:p%2Fw%3A@h', { username: 'u@x', password: 'p/w:' }],
  ['redis://:secret@h', { username: undefined, password: 'secret' }],
  ['redis://user@h', { username: 'user', password: undefined }],
  [
    'redis+sentinel://h1,h2:7/mymaster/2',
    {
      flavour: 'sentinel',
      hosts: [
        { host: 'h1', port: 26379 },
        { host: 'h2', port: 7 },
      ],
      path: ['mymaster', '2'],
    },
  ],
  [
    'rediss+cluster://h1:1,h2:2',
    {
      flavour: 'cluster',
      secure: true,
      hosts: [
        { host: 'h1', port: 1 },
        { host: 'h2', port: 2 },
      ],
    },
  ],
])('%s is understood', (url, expected) => {
  expect(parseUrl(url)).toMatchObject(expected);
});

it.each([
  ['http://h', 'the url has the form'],
  ['redis://h:port', 'is not a host and port'],
  ['redis://h1,h2', 'one host'],
  ['redis://h/name', 'is not a database number'],
  ['redis+sentinel://h1,h2', 'name the master'],
  ['redis+cluster://h1,h2/1', 'database 0 alone'],
  ['redis://u:%zz@h', 'broken percent escape'],
])('%s is a ConfigError that says why', (url, message) => {
  expect(() => topologyOf({ url })).toThrow(
    expect.objectContaining({ code: 'CONFIG', message: expect.stringContaining(message) }),
  );
});

it.each([
  'redis://h/hunter2',
  'redis+sentinel://h1/master/hunter2',
  'redis+quorum://h1/hunter2',
  'redis://u:hunter2/rest@h',
  'redis+sentinel://u:hunter2/rest@h/master',
])('%s is refused without its word, which may be a password', (url) => {
  expect(() => topologyOf({ url })).toThrow(/^(?!.*hunter2)redis: /);
});

it('a url with a password is not repeated in what is wrong with it', () => {
  expect(() => topologyOf({ url: 'redis://u:hunter2@h1,h2/0' })).toThrow(/^(?!.*hunter2)/);
  expect(topologyOf({ url: 'redis://u:hunter2@h1' }).target).toBe('h1:6379');
});

it('a url and a client contradict each other; neither is too little; anything else is no client', () => {
  expect(() => topologyOf({})).toThrow(/url is missing/);
  expect(() => topologyOf({ url: 'redis://h', client: {} as never })).toThrow(/not both/);
  expect(() => topologyOf({ client: {} as never })).toThrow(
    expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
  );
});
