import { expect, it } from 'vitest';
import { LockTimeoutError } from './errors.js';

it('a timeout is told also where the backend gave a date that is none', () => {
  const holder = { owner: 'o', since: new Date(Number.NaN) };
  expect(new LockTimeoutError('k', 300, holder).message).toMatch(/held by "o"$/);
});
