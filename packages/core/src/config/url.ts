import type { BackendModule } from '../backend.js';
import { complaint, suggestion } from './complaint.js';
import type { Origin } from './config.js';

/** The scheme of a URL in lower case, without the colon; undefined where there is none. */
export function schemeOf(url: string): string | undefined {
  return /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(url)?.[1]?.toLowerCase();
}

/**
 * Takes the parameters that are ours, or the backend's options, out of a URL's query. What the driver documents stays.
 *
 * The URL is handled as text: `zookeeper://h1:2181,h2:2181` and its like are no URLs to a WHATWG parser.
 *
 * @param place names the URL in a complaint, such as `redis.url`; empty where the whole origin is the URL
 * @throws ConfigError for a parameter that nobody knows, or one given twice
 */
export function splitQuery(
  url: string,
  module: Pick<BackendModule, 'options' | 'driverParameters'>,
  origin: Origin,
  place: string,
): { readonly url: string; readonly parameters: Readonly<Record<string, string>> } {
  const mark = url.indexOf('?');
  if (mark < 0) return { url, parameters: {} };

  const ours = new Set(['prefix', ...Object.keys(module.options ?? {})]);
  const drivers = new Set(module.driverParameters ?? []);
  const parameters = new Map<string, string>();
  const kept: string[] = [];
  for (const piece of url.slice(mark + 1).split('&')) {
    if (piece === '') continue;
    const [[name, value] = ['', '']] = [...new URLSearchParams(piece)];
    if (ours.has(name)) {
      if (parameters.has(name)) throw complaint(origin, place, `gives the parameter ${name} twice`);
      parameters.set(name, value);
    } else if (drivers.has(name)) {
      kept.push(piece);
    } else {
      const known = [...ours, ...drivers];
      const what = `has the unknown parameter ${JSON.stringify(name)}${suggestion(name, known)}`;
      throw complaint(origin, place, `${what}; allowed: ${known.join(', ')}`);
    }
  }
  const query = kept.length === 0 ? '' : `?${kept.join('&')}`;
  return { url: url.slice(0, mark) + query, parameters: Object.fromEntries(parameters) };
}

/** A `sqlite:` URL for a path of the file system. */
export function sqliteUrl(path: string): string {
  // Only Windows has paths without a slash.
  const parts = path.includes('/') ? path.split('/') : path.split('\\');
  return `sqlite:${parts.map(encodeURIComponent).join('/')}`;
}
