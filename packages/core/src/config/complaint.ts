import { closest, distance } from 'fastest-levenshtein';
import { ConfigError } from '../errors.js';
import type { Origin } from './config.js';

/**
 * A `ConfigError` about one place of a configuration. Values are never part of it: any of them may be a secret,
 * or hold one that was substituted from the environment.
 */
export function complaint(origin: Origin, path: string, what: string, cause?: unknown): ConfigError {
  // A key may hold anything: what would move a terminal's cursor or reorder its text is shown as an escape.
  const visible = path.replace(
    /[\p{C}\p{Zl}\p{Zp}]/gu,
    (each) => `\\u{${each.codePointAt(0)?.toString(16)}}`,
  );
  const place = path === '' ? origin.label : `${origin.label}: ${visible}`;
  return new ConfigError(`${place} ${what}`, cause === undefined ? {} : { cause });
}

/** ` (did you mean "x"?)` for the nearest candidate, if one is near. */
export function suggestion(word: string, candidates: readonly string[]): string {
  const near = nearest(word, candidates);
  return near === undefined ? '' : ` (did you mean ${JSON.stringify(near)}?)`;
}

/** The candidate that a slip of the keyboard may have meant. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  if (candidates.length === 0) return undefined;
  const best = closest(word.toLowerCase(), [...candidates]);
  const allowed = Math.max(2, Math.floor(best.length / 3));
  return distance(word.toLowerCase(), best.toLowerCase()) <= allowed ? best : undefined;
}

/** What is said of a key that nobody knows. */
export function unknownKey(key: string, known: readonly string[]): string {
  return `is not known${suggestion(key, known)}; allowed: ${known.join(', ')}`;
}

/** `a.b` for a key of a section. */
export function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}
