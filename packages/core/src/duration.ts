import { InvalidArgumentError } from './errors.js';

/** A span of time: a bare number is milliseconds; a string carries its unit (`'250ms'`, `'1.5s'`, `'2m'`). */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`;

/** The longest ttl, extension, `minHold` or `maxHold`: 365 days, in milliseconds. */
export const MAX_DURATION = 365 * 24 * 60 * 60 * 1000;

const PATTERN = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** What a duration argument may be, besides a positive finite span. */
export interface DurationLimits {
  /** Zero is allowed (`wait`). Default false. */
  readonly zero?: boolean;
  /** `Infinity` is allowed (`wait`, `maxHold`). Default false. */
  readonly infinite?: boolean;
  /** The largest finite value in milliseconds. Default none. */
  readonly max?: number;
}

/**
 * Turns a caller's duration into milliseconds.
 *
 * @param value what the caller gave, of any type
 * @param argument the argument's name, for the error
 * @throws InvalidArgumentError naming the argument, the value and what is allowed
 */
export function parseDuration(value: unknown, argument: string, limits: DurationLimits = {}): number {
  const ms = typeof value === 'number' ? value : typeof value === 'string' ? parseText(value) : Number.NaN;
  const ok =
    ms === Infinity
      ? limits.infinite === true && typeof value === 'number'
      : Number.isFinite(ms) &&
        (ms > 0 || (ms === 0 && limits.zero === true)) &&
        ms <= (limits.max ?? Infinity);
  if (!ok) throw new InvalidArgumentError(argument, value, describe(limits));
  return ms === 0 ? 0 : ms;
}

function parseText(text: string): number {
  const match = PATTERN.exec(text);
  if (match === null) return Number.NaN;
  return Number(match[1]) * (UNITS[match[2] ?? ''] ?? Number.NaN);
}

function describe(limits: DurationLimits): string {
  const range = limits.zero ? 'zero or more' : 'more than zero';
  const max = limits.max === undefined ? '' : `, at most ${limits.max / 86_400_000} days`;
  const infinite = limits.infinite ? ', or Infinity' : '';
  return `milliseconds as a finite number, or a string such as '1.5s' (ms, s, m, h, d), ${range}${max}${infinite}`;
}
