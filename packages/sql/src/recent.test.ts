import { expect, it } from 'vitest';
import { Recent } from './recent.js';

it('remembers the names that were used last, no more than it may', () => {
  const recent = new Recent(2);
  for (const name of ['a', 'b', 'a', 'c']) recent.add(name);
  expect(['a', 'b', 'c'].filter((name) => recent.has(name))).toEqual(['a', 'c']);
});
