import { expect, it } from 'vitest';
import { json } from './output.js';

it('escapes what a terminal would obey, and stays the same to a program', () => {
  const value = { name: 'a\u009b2J\u202e\u2028\u{e0001}漢字"\n', fencingToken: 9007199254740993n };
  const text = json(value);
  expect(text).toBe(
    '{"name":"a\\u009b2J\\u202e\\u2028\\udb40\\udc01漢字\\"\\n","fencingToken":"9007199254740993"}',
  );
  expect(JSON.parse(text)).toEqual({ ...value, fencingToken: '9007199254740993' });
});
