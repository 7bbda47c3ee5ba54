import { describe, expect, it } from 'vitest';
import { checkMetadata, checkName, checkPrefix } from './names.js';

describe('names', () => {
  it.each([['a'], [' '], ['a/b'], ['..'], ['{x}'], ['\u0001'], ['😀'], ['x'.repeat(512)], ['é'.repeat(256)]])(
    'takes %j',
    (name) => {
      expect(() => checkName(name)).not.toThrow();
    },
  );

  it.each([
    [''],
    ['a\u0000b'],
    ['\ud800'],
    ['x'.repeat(513)],
    ['é'.repeat(257)],
    [42],
    [null],
    [undefined],
    [{}],
  ])('refuses %j', (name) => {
    expect(() => checkName(name)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', argument: 'name' }),
    );
  });
});

describe('metadata', () => {
  it('is up to 1 KiB of UTF-8', () => {
    expect(() => checkMetadata('x'.repeat(1024))).not.toThrow();
    expect(() => checkMetadata('x'.repeat(1025))).toThrow(expect.objectContaining({ argument: 'metadata' }));
    expect(() => checkMetadata('\udc00')).toThrow(expect.objectContaining({ argument: 'metadata' }));
  });
});

describe('prefixes', () => {
  it.each([['holdfast'], ['A.b_c-9'], ['x'.repeat(64)]])('takes %j', (prefix) => {
    expect(() => checkPrefix(prefix)).not.toThrow();
  });

  it.each([[''], ['a b'], ['a/b'], ['ä'], ['x'.repeat(65)], [null]])('refuses %j', (prefix) => {
    expect(() => checkPrefix(prefix)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', argument: 'prefix' }),
    );
  });
});
