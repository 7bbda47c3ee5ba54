import * as v from 'valibot';
import { type DurationLimits, MAX_DURATION, parseDuration } from '../duration.js';
import { MAX_FENCE_OFFSET } from '../token.js';

/**
 * What a key of a configuration may hold: each says so itself, as the end of `must be …`, and never shows the value,
 * which may be a secret. Each also takes the value's text: URLs and substituted variables have nothing else.
 */
export type Value = v.GenericSchema;

/** A duration, in ms once checked. */
export function duration(limits: DurationLimits) {
  const range = limits.zero === true ? ', zero or more' : ', more than zero';
  const max = limits.max === undefined ? '' : `, at most ${limits.max / 86_400_000} days`;
  const infinite = limits.infinite === true ? ', or Infinity' : '';
  const bare = v.pipe(v.string(), v.regex(/^(\d+(\.\d+)?|Infinity)$/), v.transform(Number));
  return mustBe(
    `milliseconds, or a string such as '1.5s' (ms, s, m, h, d)${range}${max}${infinite}`,
    v.pipe(
      v.union([v.number(), bare, v.string()]),
      v.rawTransform(({ dataset, addIssue, NEVER }) => {
        try {
          return parseDuration(dataset.value, 'duration', limits);
        } catch {
          addIssue();
          return NEVER;
        }
      }),
    ),
  );
}

/** A ttl, `minHold`: positive, at most 365 days. */
export const holdTime = duration({ max: MAX_DURATION });

/** A whole number. */
export const integer = mustBe(
  'a whole number',
  v.pipe(v.union([v.number(), v.pipe(v.string(), v.regex(/^-?\d+$/), v.transform(Number))]), v.safeInteger()),
);

/** True or false. */
export const flag = mustBe(
  'true or false',
  v.pipe(
    v.union([v.boolean(), v.picklist(['true', 'false', '1', '0'])]),
    v.transform((value) => value === true || value === 'true' || value === '1'),
  ),
);

/** What `fenceOffset` may be, as bigint; a number only while it is exact. */
export const fenceOffset = mustBe(
  'a whole number from 0 to 2^62; above 2^53 write it as a string',
  v.pipe(
    v.union([
      v.bigint(),
      v.pipe(
        v.number(),
        v.safeInteger(),
        v.transform((value) => BigInt(value)),
      ),
      v.pipe(
        v.string(),
        v.regex(/^\d{1,19}$/),
        v.transform((value) => BigInt(value)),
      ),
    ]),
    v.minValue(0n),
    v.maxValue(MAX_FENCE_OFFSET),
  ),
);

/** Some text. */
export const text = mustBe('a string', v.string());

/** An object or a list, passed on as it is. */
export const object = mustBe(
  'an object',
  v.custom<object>((value) => typeof value === 'object' && value !== null),
);

/** Anything. */
export const anything = v.unknown();

/** A tenant's prefix. */
export const prefix = mustBe(
  '1 to 64 of A-Z a-z 0-9 . _ -',
  v.pipe(v.string(), v.regex(/^[A-Za-z0-9._-]{1,64}$/)),
);

/** A URL, as text. */
export const url = mustBe(
  'a URL',
  v.pipe(
    v.union([
      v.string(),
      v.pipe(
        v.instance(URL),
        v.transform(({ href }) => href),
      ),
    ]),
    v.nonEmpty(),
  ),
);

function mustBe<S extends Value>(allowed: string, schema: S): S {
  return v.message(schema, `must be ${allowed}`) as S;
}
