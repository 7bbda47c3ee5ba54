import { z } from 'zod';
import { type DurationLimits, MAX_DURATION, parseDuration } from '../duration.js';

// Each schema also takes the value's text: URLs and substituted environment variables have nothing else.

const DURATION_TEXT = "must be milliseconds, or a string such as '1.5s' (ms, s, m, h, d)";

/** A duration, in ms once checked. */
export function duration(limits: DurationLimits): z.ZodType<number> {
  const range = limits.zero === true ? ', zero or more' : ', more than zero';
  const max = limits.max === undefined ? '' : `, at most ${limits.max / 86_400_000} days`;
  const infinite = limits.infinite === true ? ', or Infinity' : '';
  return z.unknown().transform((value, context) => {
    const plain = typeof value === 'string' && /^\d+(\.\d+)?$/.test(value) ? Number(value) : value;
    try {
      return parseDuration(plain === 'Infinity' ? Infinity : plain, 'duration', limits);
    } catch {
      context.addIssue({ code: 'custom', message: `${DURATION_TEXT}${range}${max}${infinite}` });
      return z.NEVER;
    }
  });
}

/** A ttl, `minHold`: positive, at most 365 days. */
export const holdTime = (): z.ZodType<number> => duration({ max: MAX_DURATION });

/** A whole number. */
export const integer = (): z.ZodType<number> =>
  parsed('must be a whole number', (value) => {
    const number = typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : value;
    return typeof number === 'number' && Number.isSafeInteger(number) ? number : undefined;
  });

/** True or false. */
export const flag = (): z.ZodType<boolean> =>
  parsed('must be true or false', (value) => {
    if (typeof value === 'boolean') return value;
    if (value === 'true' || value === '1') return true;
    return value === 'false' || value === '0' ? false : undefined;
  });

/** A signed 64-bit integer as bigint; a number only while it is exact. */
export const bigint = (): z.ZodType<bigint> =>
  parsed('must be a whole number that fits 64 bits; above 2^53 write it as a string', (value) => {
    const text = typeof value === 'bigint' || Number.isSafeInteger(value) ? String(value) : value;
    if (typeof text !== 'string' || !/^-?\d{1,19}$/.test(text)) return undefined;
    const big = BigInt(text);
    return BigInt.asIntN(64, big) === big ? big : undefined;
  });

/** Some text. */
export const text = (): z.ZodType<string> =>
  parsed('must be a string', (value) => (typeof value === 'string' ? value : undefined));

/** An object or a list, passed on as it is. */
export const object = (): z.ZodType<object> =>
  parsed('must be an object', (value) => (typeof value === 'object' && value !== null ? value : undefined));

/** A tenant's prefix. */
export const prefix = (): z.ZodType<string> =>
  parsed('must be 1 to 64 of A-Z a-z 0-9 . _ -', (value) =>
    typeof value === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(value) ? value : undefined,
  );

/** A URL, as text. */
export const url = (): z.ZodType<string> =>
  parsed('must be a URL', (value) => {
    if (value instanceof URL) return value.href;
    return typeof value === 'string' && value !== '' ? value : undefined;
  });

function parsed<T>(message: string, parse: (value: unknown) => T | undefined): z.ZodType<T> {
  return z.unknown().transform((value, context) => {
    const result = parse(value);
    if (result !== undefined) return result;
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  });
}
