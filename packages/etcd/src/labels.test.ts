import { expect, it } from 'vitest';
import { Labels } from './labels.js';

it('a label is used again once its key has gone, and by one claim on a name at a time', () => {
  const labels = new Labels('s');
  const [a, b] = [labels.take('k'), labels.take('k')];
  expect([a.text, b.text, labels.take('other').text]).toEqual(['s-0', 's-1', 's-0']);
  labels.giveBack(a, true);
  expect(labels.take('k').text).toBe('s-0');
  labels.giveBack(b, true);
  expect(labels.take('k').text).toBe('s-1');
});

it('a label whose key may come again is not used any more, on any name', () => {
  const labels = new Labels('s');
  const [a, b] = [labels.take('k'), labels.take('k')];
  labels.giveBack(b, false);
  expect(labels.take('k').text).toBe('s-2');
  expect(labels.take('other').text).toBe('s-2');
  labels.giveBack(a, true);
  expect(labels.take('k').text).toBe('s-3');
});
