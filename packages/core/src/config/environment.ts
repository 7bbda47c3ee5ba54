import { complaint, join } from './complaint.js';
import type { Origin } from './config.js';

const VARIABLE = /\$(\$\{)|\$\{([^}]*)\}/g;
const REFERENCE = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s;

/**
 * Replaces `${NAME}` and `${NAME:-default}` in every string of a config file by the environment's value;
 * `$${` stays as `${`. In the user and password of a URL the value is percent-encoded, so that a secret may hold any
 * character.
 *
 * @throws ConfigError naming the variable that is not set
 */
export function substitute(
  value: unknown,
  environment: Readonly<Record<string, string | undefined>>,
  origin: Origin,
  path = '',
): unknown {
  if (typeof value === 'string') return expand(value, environment, origin, path);
  if (Array.isArray(value)) {
    return value.map((each, index) => substitute(each, environment, origin, join(path, String(index))));
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, substitute(each, environment, origin, join(path, key))]),
  );
}

function expand(
  text: string,
  environment: Readonly<Record<string, string | undefined>>,
  origin: Origin,
  path: string,
): string {
  const credentials = credentialsOf(text);
  return text.replace(VARIABLE, (_match, escaped: string | undefined, reference: string, at: number) => {
    if (escaped !== undefined) return '${';
    const [, name, fallback] = REFERENCE.exec(reference) ?? [];
    if (name === undefined)
      throw complaint(origin, path, `has a malformed \${…}: write \${NAME} or \${NAME:-default}`);
    // As in a shell, `:-` also stands in for an empty value.
    const found = environment[name];
    const chosen = fallback !== undefined && (found === undefined || found === '') ? fallback : found;
    if (chosen === undefined) {
      throw complaint(origin, path, `needs the environment variable ${name}, which is not set`);
    }
    return at >= credentials.from && at < credentials.to ? encodeURIComponent(chosen) : chosen;
  });
}

/** Where a URL's user and password stand in the text, before anything was substituted. */
function credentialsOf(text: string): { readonly from: number; readonly to: number } {
  const scheme = /^[A-Za-z][A-Za-z0-9+.-]*:\/\//.exec(text);
  if (scheme === null) return { from: 0, to: 0 };
  const from = scheme[0].length;
  // A default inside ${…} may hold slashes and the like: blanked, so that only the URL's own characters count.
  const plain = text.replace(/\$\{[^}]*\}/g, (reference) => '_'.repeat(reference.length));
  const end = plain.slice(from).search(/[/?#]/);
  const to = plain.slice(from, end < 0 ? undefined : from + end).lastIndexOf('@');
  return to < 0 ? { from: 0, to: 0 } : { from, to: from + to };
}
