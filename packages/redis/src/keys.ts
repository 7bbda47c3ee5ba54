/** The keys of one name, all in one hash slot: the name in braces is the hash tag, whatever the name. */
export interface Keys {
  /** The lock itself; its expiry is the lock's. */
  readonly lock: string;
  /** The last token, and whether there is anything in `alive`. */
  readonly fence: string;
  /** Waiters by order of arrival. */
  readonly queue: string;
  /** The same waiters by the moment until which they count as alive, and the tombstones of claims. */
  readonly alive: string;
  /** The token of the grant that was broken by force last. */
  readonly forced: string;
}

const ESCAPES: Readonly<Record<string, string>> = { '%': '%25', '{': '%7B', '}': '%7D' };

/**
 * Where a tenant's keys and channels are. A brace in a name would end the hash tag early, or start it elsewhere, and
 * tear the name's keys apart in a cluster: braces are escaped.
 */
export class Keyspace {
  /** What every key and channel of ours begins with. */
  readonly root: string;
  /** The keys of the name that was asked for last: whoever takes a lock gives it back. */
  #last: { readonly name: string; readonly keys: Keys } | undefined;

  /**
   * @param prefix isolates tenants
   * @param keyPrefix of a client that was handed in; put on by us, because the client puts it on keys alone
   */
  constructor(prefix: string, keyPrefix = '') {
    this.root = `${keyPrefix}${prefix}:`;
  }

  keys(name: string): Keys {
    if (this.#last?.name === name) return this.#last.keys;
    const lock = this.lock(name);
    const keys = {
      lock,
      fence: `${lock}:fence`,
      queue: `${lock}:queue`,
      alive: `${lock}:alive`,
      forced: `${lock}:forced`,
    };
    this.#last = { name, keys };
    return keys;
  }

  lock(name: string): string {
    return `${this.root}{${escapeName(name)}}`;
  }

  /** Since when a server of a quorum has forgotten nothing. */
  get born(): string {
    return `${this.root}born`;
  }

  /** Where the waiters of one instance are woken. */
  channel(instance: string): string {
    return `${this.root}wake:${instance}`;
  }

  /** A glob for the keys of all names that begin with `prefix`. */
  pattern(prefix: string): string {
    return `${`${this.root}{${escapeName(prefix)}`.replace(/[*?[\]\\]/g, '\\$&')}*`;
  }

  /** The name whose lock or queue this key is; undefined for any other key. */
  nameOf(key: string): string | undefined {
    const end = key.lastIndexOf('}');
    const suffix = key.slice(end + 1);
    const name = key.slice(this.root.length + 1, end);
    if (name === '' || (suffix !== '' && suffix !== ':queue')) return undefined;
    return unescapeName(name);
  }
}

function escapeName(name: string): string {
  return /[%{}]/.test(name) ? name.replace(/[%{}]/g, (character) => ESCAPES[character] ?? character) : name;
}

function unescapeName(text: string): string {
  return text.replace(/%(25|7B|7D)/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}
