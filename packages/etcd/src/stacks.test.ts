import { runInNewContext } from 'node:vm';
import { expect, it, onTestFinished } from 'vitest';
import { withoutStacks } from './stacks.js';

const traced = (error: Error) => (error.stack ?? '').includes('\n    at ');

it('an error of the work has no stack, one of later has', () => {
  expect(traced(withoutStacks(() => new Error('inside')))).toBe(false);
  expect(traced(new Error('outside'))).toBe(true);
});

it('work that throws leaves no trace of it', () => {
  const failing = () => {
    throw new RangeError('wrong');
  };
  expect(() => withoutStacks(failing)).toThrow(RangeError);
  expect(traced(new Error('outside'))).toBe(true);
});

it('runs the work where Error is frozen', () => {
  const { Error: ours } = globalThis;
  onTestFinished(() => {
    globalThis.Error = ours;
  });
  globalThis.Error = runInNewContext('Object.freeze(Error)');
  expect(withoutStacks(() => 7)).toBe(7);
});
