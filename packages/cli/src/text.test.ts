import { expect, it } from 'vitest';
import { fit, printable, quoted, span, table } from './text.js';

it.each([
  ['plain text stays', 'order:42 ñ 漢字 🙂', 'order:42 ñ 漢字 🙂'],
  ['terminal escapes', '\u001b[31mred\u001b]0;title\u0007', '\\e[31mred\\e]0;title\\u{7}'],
  ['lines and tabs', 'a\r\nb\tc', 'a\\r\\nb\\tc'],
  ['C1 controls', '\u009b2J', '\\u{9b}2J'],
  ['direction overrides', 'a\u202eb\u2066c', 'a\\u{202e}b\\u{2066}c'],
  ['separators and what has no width', '\u2028\u200b\ufeff', '\\u{2028}\\u{200b}\\u{feff}'],
])('%s', (_what, text, shown) => {
  expect(printable(text)).toBe(shown);
});

it('quotes what could be taken for something else', () => {
  expect(['job', '', 'a b', 'say "x"', 'a\n'].map(quoted)).toEqual([
    'job',
    '""',
    '"a b"',
    '"say \\"x\\""',
    '"a\\n"',
  ]);
});

it.each([
  [0, '0ms'],
  [999.4, '999ms'],
  [1500, '1.5s'],
  [59_999, '59.9s'],
  [60_000, '1m'],
  [200_000, '3m 20s'],
  [7_500_000, '2h 5m'],
  [90_000_000, '1d 1h'],
])('%d ms is %s', (ms, text) => {
  expect(span(ms)).toBe(text);
});

it('gives each column the width of its widest cell', () => {
  expect(
    table(
      ['A', 'B'],
      [
        ['long', '1'],
        ['x', '2'],
      ],
    ),
  ).toBe('A     B\nlong  1\nx     2');
});

it('counts the columns that a terminal gives to each character', () => {
  expect(table(['A', 'B'], [['漢字', '1']])).toBe('A     B\n漢字  1');
});

it.each([
  ['what fits stays', 'job', 3, 'job'],
  ['the rest becomes a mark', 'nightly', 5, 'nigh…'],
  ['a wide character is in or out', '漢字漢字', 4, '漢…'],
  ['one that is made of several is not cut through', '👨‍👩‍👧ab', 3, '👨‍👩‍👧…'],
])('fit: %s', (_what, text, columns, shown) => {
  expect(fit(text, columns)).toBe(shown);
});
