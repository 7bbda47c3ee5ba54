import type { BackendModule } from '../backend.js';
import { complaint, suggestion } from './complaint.js';
import type { Origin } from './config.js';

/** The scheme of a URL in lower case, without the colon; undefined where there is none. */
export function schemeOf(url: string): string | undefined {
  return /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(url)?.[1]?.toLowerCase();
}

/** A host and its port as far as every backend agrees: no white space, nothing that means something else in a URL. */
const HOST = /^(\[[0-9A-Za-z:.%_-]+\]|[^\s:@[\]\\^`{|}<>"]+)(:\d{1,5})?$/;

/**
 * A server's URL with its user and password in a form that every driver reads alike. A character of theirs that was
 * not percent-encoded would be taken for the start of the host, path or query, and told in somebody's error.
 *
 * @throws ConfigError, which shows nothing of the URL
 */
export function checkedUrl(url: string, origin: Origin, place: string): string {
  const [, start, before = '', query = ''] =
    /^([A-Za-z][A-Za-z0-9+.-]*:\/\/)([^?]*)(.*)$/s.exec(url.trim()) ?? [];
  if (start === undefined) return url.trim();
  const slash = before.indexOf('/');
  const authority = slash < 0 ? before : before.slice(0, slash);
  const path = slash < 0 ? '' : before.slice(slash);
  const at = authority.lastIndexOf('@');
  const hosts = authority.slice(at + 1);
  const fault = faultOf({ user: authority.slice(0, Math.max(0, at)), hosts, path, query, hasUser: at >= 0 });
  if (fault !== undefined) {
    const how = 'percent-encode user and password (encodeURIComponent), and put them before an @';
    throw complaint(origin, place, `${fault}: ${how}`);
  }
  // The last @ ends the password, as for every parser of the web; some drivers take the first.
  const user = at < 0 ? '' : `${authority.slice(0, at).replaceAll('@', '%40')}@`;
  return `${start}${user}${hosts}${path}${query}`;
}

function faultOf(parts: {
  readonly user: string;
  readonly hasUser: boolean;
  readonly hosts: string;
  readonly path: string;
  readonly query: string;
}): string | undefined {
  const { user, hasUser, hosts, path, query } = parts;
  if (Object.values(parts).join('').includes('#')) return 'has a #';
  if (!hasUser && (path.includes('@') || /^\?[^=&]*@/.test(query))) return 'has a / or ? before its @';
  if (hosts !== '' && !hosts.split(',').every((host) => HOST.test(host.trim()))) {
    return 'has a host that is not of the form host or host:port';
  }
  return isDecodable(user) ? undefined : 'has a % that begins no percent escape';
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
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
      // What is no name may be the rest of a password that held a question mark.
      const shown = /^[\w.-]{1,64}$/.test(name) ? ` ${JSON.stringify(name)}${suggestion(name, known)}` : '';
      const what = `has ${shown === '' ? 'an' : 'the'} unknown parameter${shown}`;
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
