import { describe, expect, test } from 'vitest';
import { decodeName, encodeName, inOrder, isOwnedBy, nodePrefix, ownerOf, parseNode } from './names.js';

const NAMES = [
  'file:///v',
  '.',
  '..',
  'a/./b',
  'a',
  'a/b',
  '\u0001',
  'zookeeper',
  'x/',
  ' ',
  '🔒',
  '%2E',
  '%2e',
  'Job',
  'job',
  'a-0000000001',
  'x'.repeat(5000),
];

describe('a lock name', () => {
  test('reads back from its node', () => {
    expect(NAMES.map((name) => decodeName(encodeName(name)))).toEqual(NAMES);
  });

  test('meets no other', () => {
    expect(new Set(NAMES.map(encodeName)).size).toBe(NAMES.length);
  });

  test('is never what ZooKeeper refuses', () => {
    for (const name of NAMES) expect(encodeName(name)).toMatch(/^(?!\.{1,2}$)[\x21-\x2e\x30-\x7e]+$/);
  });

  test('is not read from a node that we would have written otherwise', () => {
    expect(['a b', '%2f', '%', '%ff', '.', ''].map(decodeName)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
      '',
    ]);
  });
});

describe("a claim's node", () => {
  test.each(['host:12:ab', 'a-b', 'a-', 'a--', '-', 'x-0000000001', 'x-2147483647', 'ä/ö', 'owner#2'])(
    'gives its owner %j back, before and after the sequence turns negative',
    (owner) => {
      for (const [sequence, digits] of [
        [0, '0000000000'],
        [2147483647, '2147483647'],
        [-2147483648, '-2147483648'],
        [-5, '-000000005'],
      ] as const) {
        const contender = { node: nodePrefix(owner) + digits, sequence };
        expect(parseNode(contender.node)).toEqual(contender);
        expect(ownerOf(contender)).toBe(owner);
        expect(isOwnedBy(owner, contender)).toBe(true);
        expect(isOwnedBy(`${owner}x`, contender)).toBe(false);
        expect(isOwnedBy(`x${owner}`, contender)).toBe(false);
      }
    },
  );

  test('zk-negative-parse: keeps the minus sign', () => {
    expect(parseNode('_c_6f1c2b0e-lock--2147483647')?.sequence).toBe(-2147483647);
  });

  test("is not read from a stranger's", () => {
    expect(['foo-bar', 'x', 'lock-1', '-0000000001', 'a-9999999999'].map(parseNode)).toEqual(
      Array(5).fill(undefined),
    );
  });
});

describe('a queue', () => {
  const owners = (children: string[]): string[] => inOrder(children).map(ownerOf);

  test('zk-sort-by-name: goes by sequence, whatever the owners are called', () => {
    expect(owners(['0000-lock-0000000003', 'ffff-lock-0000000002'])).toEqual(['ffff-lock', '0000-lock']);
  });

  test('goes on where the sequence wraps', () => {
    expect(owners(['c--2147483648', 'd--2147483647', 'b-2147483647', 'a-2147483646'])).toEqual([
      'a',
      'b',
      'c',
      'd',
    ]);
  });

  test('goes on where the sequence passes zero', () => {
    expect(owners(['b-0000000000', 'a--000000001', 'c-0000000001'])).toEqual(['a', 'b', 'c']);
  });

  test("has no place for strangers' nodes", () => {
    expect(owners(['foo-bar', 'x', 'a-0000000007'])).toEqual(['a']);
  });
});
