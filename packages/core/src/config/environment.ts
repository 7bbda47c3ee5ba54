import { isSection } from './backends.js';
import { complaint, join } from './complaint.js';
import type { Origin } from './config.js';

const VARIABLE = /\$(\$\{)|\$\{([^}]*)(\}?)/g;
/** Without another `${` in the default: who nests them expects what a shell does. */
const REFERENCE = /^([A-Za-z_][A-Za-z0-9_]*)(?::-((?:(?!\$\{).)*))?$/s;

/**
 * As {@link substitute} for a whole config file, but for the sections of backends that it does not choose: their
 * variables need not be set, so that one file serves the desk and the server.
 *
 * @throws ConfigError naming the variable that is not set
 */
export function substituteConfig(
  value: unknown,
  environment: Readonly<Record<string, string | undefined>>,
  origin: Origin,
): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return substitute(value, environment, origin);
  }
  const backend = substitute('backend' in value ? value.backend : undefined, environment, origin, 'backend');
  const entries = Object.entries(value).map(([key, each]) => [
    key,
    isSection(key) && key !== backend ? each : substitute(each, environment, origin, key),
  ]);
  return Object.fromEntries(entries);
}

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
  const replace = (
    _match: string,
    escaped: string | undefined,
    reference: string,
    end: string,
    at: number,
  ) => {
    if (escaped !== undefined) return '${';
    const [, name, fallback] = REFERENCE.exec(reference) ?? [];
    if (name === undefined || end === '') {
      const how = `write \${NAME} or \${NAME:-default}, and $\${ for the characters themselves`;
      throw complaint(origin, path, `has a malformed \${…}: ${how}`);
    }
    // As in a shell, `:-` also stands in for an empty value.
    const found = environment[name];
    const chosen = fallback !== undefined && (found === undefined || found === '') ? fallback : found;
    if (chosen === undefined) {
      throw complaint(origin, path, `needs the environment variable ${name}, which is not set`);
    }
    return at >= credentials.from && at < credentials.to ? encodeURIComponent(chosen) : chosen;
  };
  return text.replace(VARIABLE, replace);
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
