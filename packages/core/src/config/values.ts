import { type DurationLimits, MAX_DURATION, parseDuration } from '../duration.js';

/** What a key of a configuration may hold. It also takes the value's text: URLs and substituted variables have nothing else. */
export interface Kind<T> {
  /** For the complaint: `must be …`. */
  readonly allowed: string;
  /** The value as it is used, or undefined where it is not allowed. */
  parse(value: unknown): T | undefined;
}

/** A duration, in ms once checked. */
export function duration(limits: DurationLimits): Kind<number> {
  const range = limits.zero === true ? ', zero or more' : ', more than zero';
  const max = limits.max === undefined ? '' : `, at most ${limits.max / 86_400_000} days`;
  const infinite = limits.infinite === true ? ', or Infinity' : '';
  return {
    allowed: `milliseconds, or a string such as '1.5s' (ms, s, m, h, d)${range}${max}${infinite}`,
    parse(value) {
      const number =
        typeof value === 'string' && /^(\d+(\.\d+)?|Infinity)$/.test(value) ? Number(value) : value;
      try {
        return parseDuration(number, 'duration', limits);
      } catch {
        return undefined;
      }
    },
  };
}

/** A ttl, `minHold`: positive, at most 365 days. */
export const holdTime: Kind<number> = duration({ max: MAX_DURATION });

/** A whole number. */
export const integer: Kind<number> = {
  allowed: 'a whole number',
  parse(value) {
    const number = typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : value;
    return typeof number === 'number' && Number.isSafeInteger(number) ? number : undefined;
  },
};

/** True or false. */
export const flag: Kind<boolean> = {
  allowed: 'true or false',
  parse(value) {
    if (typeof value === 'boolean') return value;
    if (value === 'true' || value === '1') return true;
    return value === 'false' || value === '0' ? false : undefined;
  },
};

/** A signed 64-bit integer as bigint; a number only while it is exact. */
export const bigint: Kind<bigint> = {
  allowed: 'a whole number that fits 64 bits; above 2^53 write it as a string',
  parse(value) {
    const text = typeof value === 'bigint' || Number.isSafeInteger(value) ? String(value) : value;
    if (typeof text !== 'string' || !/^-?\d{1,19}$/.test(text)) return undefined;
    const big = BigInt(text);
    return BigInt.asIntN(64, big) === big ? big : undefined;
  },
};

/** Some text. */
export const text: Kind<string> = {
  allowed: 'a string',
  parse: (value) => (typeof value === 'string' ? value : undefined),
};

/** An object or a list, passed on as it is. */
export const object: Kind<object> = {
  allowed: 'an object',
  parse: (value) => (typeof value === 'object' && value !== null ? value : undefined),
};

/** Anything. */
export const anything: Kind<unknown> = { allowed: 'anything', parse: (value) => value };

/** A tenant's prefix. */
export const prefix: Kind<string> = {
  allowed: '1 to 64 of A-Z a-z 0-9 . _ -',
  parse: (value) => (typeof value === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(value) ? value : undefined),
};

/** A URL, as text. */
export const url: Kind<string> = {
  allowed: 'a URL',
  parse(value) {
    if (value instanceof URL) return value.href;
    return typeof value === 'string' && value !== '' ? value : undefined;
  },
};
