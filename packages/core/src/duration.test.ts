import { describe, expect, it } from 'vitest';
import { MAX_DURATION, parseDuration } from './duration.js';

describe('durations', () => {
  it.each([
    [1500, 1500],
    [0.5, 0.5],
    ['250ms', 250],
    ['1.5s', 1500],
    ['2m', 120_000],
    ['1h', 3_600_000],
    ['365d', MAX_DURATION],
  ])('reads %j as %d ms', (given, ms) => {
    expect(parseDuration(given, 'ttl', { max: MAX_DURATION })).toBe(ms);
  });

  it.each([
    [Number.NaN],
    [-1],
    [0],
    [Infinity],
    [null],
    [undefined],
    [true],
    [{}],
    [1n],
    [''],
    ['5'],
    ['5 s'],
    ['-5s'],
    ['1e3s'],
    ['5S'],
    ['.5s'],
    ['5.s'],
    ['0s'],
    ['366d'],
    ['Infinity'],
  ])('refuses %s as a ttl, naming it', (given) => {
    const parse = () => parseDuration(given, 'ttl', { max: MAX_DURATION });
    expect(parse).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', argument: 'ttl' }));
    expect(parse).toThrow(/^ttl is .*allowed: /);
  });

  it('takes zero and Infinity where they make sense', () => {
    expect(parseDuration(0, 'wait', { zero: true, infinite: true })).toBe(0);
    expect(parseDuration('0ms', 'wait', { zero: true, infinite: true })).toBe(0);
    expect(Object.is(parseDuration(-0, 'wait', { zero: true }), 0)).toBe(true);
    expect(parseDuration(Infinity, 'wait', { zero: true, infinite: true })).toBe(Infinity);
  });
});
