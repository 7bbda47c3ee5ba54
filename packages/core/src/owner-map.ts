/** A power of two, so that ten thousand entries are ten in each. */
const BUCKETS = 1024;

interface Entry<T> {
  readonly owner: string;
  value: T;
  next: Entry<T> | undefined;
}

/**
 * What there is by owner, for entries that come and go by the ten thousand a second.
 *
 * The language's own `Map` copies itself into a new table after some hundred deletions, and each table that was left
 * points to its successor. The first of them that has lived long enough to be old keeps all that follow, with whatever
 * was in them, until the next full collection: with a hundred acquisitions under way at once, collecting what had long
 * been over took as much time as all the rest of an acquisition.
 */
export class OwnerMap<T> {
  readonly #buckets: (Entry<T> | undefined)[] = new Array(BUCKETS).fill(undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(owner: string): T | undefined {
    let entry = this.#buckets[bucketOf(owner)];
    while (entry !== undefined && entry.owner !== owner) entry = entry.next;
    return entry?.value;
  }

  set(owner: string, value: T): void {
    const bucket = bucketOf(owner);
    const first = this.#buckets[bucket];
    for (let entry = first; entry !== undefined; entry = entry.next) {
      if (entry.owner !== owner) continue;
      entry.value = value;
      return;
    }
    this.#buckets[bucket] = { owner, value, next: first };
    this.#size += 1;
  }

  /** @returns false when there is nothing of that owner */
  delete(owner: string): boolean {
    const bucket = bucketOf(owner);
    let before: Entry<T> | undefined;
    let entry = this.#buckets[bucket];
    while (entry !== undefined && entry.owner !== owner) {
      before = entry;
      entry = entry.next;
    }
    if (entry === undefined) return false;
    if (before === undefined) this.#buckets[bucket] = entry.next;
    else before.next = entry.next;
    entry.next = undefined;
    this.#size -= 1;
    return true;
  }

  clear(): void {
    this.#buckets.fill(undefined);
    this.#size = 0;
  }

  /** A copy: what is done with the values may change the map. */
  values(): T[] {
    const values: T[] = [];
    for (let entry of this.#buckets) {
      for (; entry !== undefined; entry = entry.next) values.push(entry.value);
    }
    return values;
  }
}

/** By the end of the owner, which is the random part of those that core makes: hexadecimal digits. */
function bucketOf(owner: string): number {
  const end = owner.length;
  const digits = (nibble(owner, end - 3) << 8) | (nibble(owner, end - 2) << 4) | nibble(owner, end - 1);
  return digits & (BUCKETS - 1);
}

function nibble(text: string, index: number): number {
  const code = text.charCodeAt(index);
  return (code + (code >> 6) * 9) & 15;
}
