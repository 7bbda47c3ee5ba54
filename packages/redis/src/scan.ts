import type { Keyspace } from './keys.js';
import type { Link } from './link.js';

const PAGE = 500;

/** The names that have a lock or a queue, in pages, each name once, from every server that holds keys. */
export async function* listNames(
  masters: readonly Link[],
  keyspace: Keyspace,
  prefix: string,
): AsyncIterable<readonly string[]> {
  // SCAN may repeat a key, and a name may have both a lock and a queue.
  const met = new Set<string>();
  for (const master of masters) {
    let cursor = '0';
    do {
      const reply = await master.call('scan', [cursor, 'MATCH', keyspace.pattern(prefix), 'COUNT', PAGE]);
      const [next, keys] = reply as [string, string[]];
      cursor = String(next);
      const names: string[] = [];
      for (const key of keys) {
        const name = keyspace.nameOf(key);
        if (name === undefined || met.has(name)) continue;
        met.add(name);
        names.push(name);
      }
      if (names.length > 0) yield names;
    } while (cursor !== '0');
  }
}
