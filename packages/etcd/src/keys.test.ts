import { describe, expect, it } from 'vitest';
import { Keyspace } from './keys.js';

const NAMES = [
  'a',
  'a/b',
  'a/',
  '/',
  '..',
  '.',
  ' ',
  'a b',
  '{x}',
  'a:b',
  '%2F',
  'ö',
  '🔒',
  '\u0001',
  'claim',
  'a/claim/b',
];

describe('keys', () => {
  const keys = new Keyspace('holdfast');

  it('carry name and maker, whatever is in them', () => {
    for (const name of NAMES) {
      for (const maker of NAMES) expect(keys.parse(keys.claim(name, maker))).toEqual({ name, maker });
    }
  });

  it('of two names are never in one range', () => {
    for (const name of NAMES) {
      const { key, range_end } = keys.claims(name);
      for (const other of NAMES) {
        const claim = keys.claim(other, 'maker');
        const within = claim.compare(key) >= 0 && claim.compare(range_end) < 0;
        expect([name, other, within]).toEqual([name, other, name === other]);
      }
    }
  });

  it('of names with a prefix are in the range of the prefix, and no others', () => {
    const { key, range_end } = keys.names('a');
    for (const name of NAMES) {
      const claim = keys.claim(name, 'maker');
      const within = claim.compare(key) >= 0 && claim.compare(range_end) < 0;
      expect([name, within]).toEqual([name, name.startsWith('a')]);
    }
  });

  it('of another prefix are not ours', () => {
    expect(keys.parse(new Keyspace('holdfast2').claim('a', 'b'))).toBeUndefined();
    expect(new Keyspace('holdfast2').parse(keys.claim('a', 'b'))).toBeUndefined();
  });

  it('that somebody else made are not ours', () => {
    for (const key of [
      'holdfast/a',
      'holdfast/a/1',
      'holdfast/a/claim',
      'holdfast/a/claim/',
      'holdfast/a/claim/b/c',
      'holdfast/a/claim/%',
      'x',
    ])
      expect([key, keys.parse(Buffer.from(key))]).toEqual([key, undefined]);
  });
});
