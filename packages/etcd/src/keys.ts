/** A span of keys as etcd takes it: `key` inclusive, `range_end` exclusive. */
export interface KeyRange {
  readonly key: Buffer;
  readonly range_end: Buffer;
}

/** What a key of ours says. */
export interface ClaimKey {
  readonly name: string;
  /** The owner that made the key. The owner of today is in the value: an adopted hold keeps its key, and so its token. */
  readonly maker: string;
}

/**
 * Where claims live: `<prefix>/<name>/claim/<maker>`; and for a while `<prefix>/<name>/forced/<id>`.
 *
 * Name and maker are percent-encoded, which is injective and leaves no slash in them: `a` and `a/b` never meet, and all
 * claims on one name are one range of keys that holds no other name's.
 */
export class Keyspace {
  readonly #root: string;

  constructor(prefix: string) {
    this.#root = `${prefix}/`;
  }

  claim(name: string, maker: string): Buffer {
    return Buffer.from(`${this.#claims(name)}${encodeURIComponent(maker)}`);
  }

  /** The mark of a grant that was broken by force: beside the claims, none of them. */
  forced(name: string, id: string): Buffer {
    return Buffer.from(`${this.#root}${encodeURIComponent(name)}/forced/${id}`);
  }

  /** Every claim on the name. */
  claims(name: string): KeyRange {
    return startingWith(this.#claims(name));
  }

  /** Every claim on every name that starts with `namePrefix`, and whatever foreign keys lie between them. */
  names(namePrefix = ''): KeyRange {
    return startingWith(this.#root + encodeURIComponent(namePrefix));
  }

  /** Undefined for a key that is not ours. */
  parse(key: Buffer): ClaimKey | undefined {
    const text = key.toString();
    if (!text.startsWith(this.#root)) return undefined;
    const [name, kind, maker, ...rest] = text.slice(this.#root.length).split('/');
    if (!name || kind !== 'claim' || !maker || rest.length > 0) return undefined;
    try {
      return { name: decodeURIComponent(name), maker: decodeURIComponent(maker) };
    } catch {
      return undefined;
    }
  }

  #claims(name: string): string {
    return `${this.#root}${encodeURIComponent(name)}/claim/`;
  }
}

function startingWith(text: string): KeyRange {
  const key = Buffer.from(text);
  const end = Buffer.from(key);
  // The text is ASCII and never empty: its last byte can always be raised.
  end[end.length - 1] = (end[end.length - 1] ?? 0) + 1;
  return { key, range_end: end };
}
