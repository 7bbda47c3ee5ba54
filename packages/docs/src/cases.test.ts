import { describe, expect, it } from 'vitest';
import { findCases } from './cases.js';
import { data } from './data.js';

describe('the cases that others met', () => {
  const groups = data('cases');

  it('each have a test that bears the id', () => {
    const without = [...findCases(groups)].filter(([, paths]) => paths.length === 0).map(([id]) => id);
    expect(without).toEqual([]);
  });

  it('are listed once', () => {
    const ids = groups.flatMap(({ cases }) => cases.map(({ id }) => id));
    expect(ids).toHaveLength(107);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('are missed where no test bears the id', () => {
    const made = [{ group: 'made up', cases: [{ id: 'never-heard-of', what: '' }] }];
    expect(findCases(made).get('never-heard-of')).toEqual([]);
  });
});
