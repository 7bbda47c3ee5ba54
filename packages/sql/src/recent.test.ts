import { expect, it } from 'vitest';
import { Recent } from './recent.js';

it('remembers the names that were set last, no more than it may', () => {
  const recent = new Recent<number>(2);
  for (const [index, name] of ['a', 'b', 'a', 'c'].entries()) recent.set(name, index);
  expect(['a', 'b', 'c'].map((name) => recent.get(name))).toEqual([2, undefined, 3]);
});
