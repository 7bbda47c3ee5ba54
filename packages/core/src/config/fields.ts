import * as v from 'valibot';
import { complaint, join, unknownKey } from './complaint.js';
import type { Origin } from './config.js';

/**
 * An object whose keys are known. Each may be left out, or be undefined, which is the same.
 *
 * Its complaints are whole sentences but for the place, which {@link check} adds.
 */
export function fields<const E extends v.ObjectEntries>(entries: E) {
  const closed = v.strictObject(entries, ({ input, expected }) =>
    expected === 'never' ? unknownKey(String(input), Object.keys(entries)) : NO_OBJECT,
  );
  return v.pipe(v.custom<object>(isRecord, NO_OBJECT), v.partial(closed), v.transform(withoutUndefined));
}

/**
 * What a schema makes of a value.
 *
 * @param path where the value stands in what `origin` holds; empty for all of it
 * @throws ConfigError naming the origin and the path
 */
export function check<S extends v.GenericSchema>(
  schema: S,
  value: unknown,
  origin: Origin,
  path: string,
): v.InferOutput<S> {
  const checked = v.safeParse(schema, value);
  if (checked.success) return checked.output;
  const [issue] = checked.issues;
  const inside = v.getDotPath(issue);
  throw complaint(origin, inside === null ? path : join(path, inside), issue.message);
}

const NO_OBJECT = 'must be an object';

function isRecord(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The same object without the keys that are undefined. */
export function withoutUndefined<T extends object>(
  value: T,
): { readonly [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as T;
}
