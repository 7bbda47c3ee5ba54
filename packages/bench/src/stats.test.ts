import { describe, expect, it } from 'vitest';
import { median, quantile } from './stats.js';

describe('statistics', () => {
  it('takes the middle value, whatever the order', () => {
    expect(median([5, 1, 3])).toBe(3);
    expect(quantile([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0.99)).toBe(10);
    expect(median([4, 1])).toBe(2.5);
    expect(median([])).toBeNaN();
  });
});
