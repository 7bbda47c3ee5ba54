import { expect, it } from 'vitest';
import { Keyspace } from './keys.js';
import { slotOf } from './slot.js';

const NAMES = [
  'my-key',
  'a{b}c',
  'a}b{c',
  '{test',
  'abc{}xyz',
  '}{',
  '{',
  '}',
  '{}',
  'a/b',
  '%7B',
  '50%',
  '🔑 job',
  '*?[x]\\',
];

it.each(['', 'app:', '{app}:', 'a{b:'])(
  'derived-key-crossslot: all keys of a name share a slot (keyPrefix %j)',
  (keyPrefix) => {
    const keyspace = new Keyspace('holdfast', keyPrefix);
    for (const name of NAMES) {
      const keys = keyspace.keys(name);
      expect(new Set(Object.values(keys).map(slotOf)).size, name).toBe(1);
    }
  },
);

it('names spread over the slots: the hash tag is the name', () => {
  const keyspace = new Keyspace('holdfast');
  expect(slotOf(keyspace.lock('a'))).not.toBe(slotOf(keyspace.lock('b')));
  expect(slotOf(keyspace.lock('job'))).toBe(slotOf('job'));
});

it('no two names share a key, and a key tells its name', () => {
  const keyspace = new Keyspace('holdfast', 'app:');
  expect(new Set(NAMES.map((name) => keyspace.lock(name))).size).toBe(NAMES.length);
  for (const name of NAMES) {
    const { lock, queue, fence, alive, forced } = keyspace.keys(name);
    expect([keyspace.nameOf(lock), keyspace.nameOf(queue)]).toEqual([name, name]);
    expect([fence, alive, forced].map((key) => keyspace.nameOf(key))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  }
});

it('a key with no name in it is none of ours', () => {
  const keyspace = new Keyspace('holdfast');
  expect([keyspace.nameOf('holdfast:{}'), keyspace.nameOf('holdfast:{}:queue')]).toEqual([
    undefined,
    undefined,
  ]);
});

it('channels carry the client’s keyPrefix, which ioredis would not put on them', () => {
  expect(new Keyspace('shop', 'app:').channel('x')).toBe('app:shop:wake:x');
});

it('a pattern takes nothing in a name for a wildcard', () => {
  expect(new Keyspace('holdfast').pattern('a*[b]?\\{')).toBe('holdfast:{a\\*\\[b\\]\\?\\\\%7B*');
});
