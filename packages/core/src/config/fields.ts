import { complaint, join, unknownKey } from './complaint.js';
import type { Origin } from './config.js';
import type { Kind } from './values.js';

/** The keys that an object may have, and what each may hold. */
export type Fields = Readonly<Record<string, Kind<unknown>>>;

/** What {@link checkFields} makes of an object: every key is optional, and left out where it is undefined. */
export type Checked<F extends Fields> = {
  readonly [K in keyof F]?: F[K] extends Kind<infer T> ? T : never;
};

/**
 * Checks an object key by key.
 *
 * @throws ConfigError naming the origin and the path; the nearest known key where one is unknown
 */
export function checkFields<F extends Fields>(
  value: unknown,
  fields: F,
  origin: Origin,
  path: string,
): Checked<F> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw complaint(origin, path, 'must be an object');
  }
  const checked: [string, unknown][] = [];
  for (const [key, given] of Object.entries(value)) {
    const kind = Object.hasOwn(fields, key) ? fields[key] : undefined;
    if (kind === undefined) throw unknownKey(origin, path, key, Object.keys(fields));
    if (given === undefined) continue;
    const parsed = kind.parse(given);
    if (parsed === undefined) throw complaint(origin, join(path, key), `must be ${kind.allowed}`);
    checked.push([key, parsed]);
  }
  return Object.fromEntries(checked) as Checked<F>;
}
