import { join } from 'node:path';
import Database from 'libsql';

/** A cache that the instances share, such as Redis would be. */
export function openCache(folder) {
  const db = new Database(join(folder, 'cache.db'), { timeout: 5000 });
  db.exec(
    'CREATE TABLE IF NOT EXISTS cache (key TEXT PRIMARY KEY, value TEXT NOT NULL, fresh INTEGER NOT NULL)',
  );
  const get = db.prepare('SELECT value, fresh FROM cache WHERE key = ?');
  const set = db.prepare('INSERT OR REPLACE INTO cache VALUES (?, ?, 1)');
  const expire = db.prepare('UPDATE cache SET fresh = 0 WHERE key = ?');
  return {
    get: (key) => get.get(key),
    set: (key, value) => set.run(key, value),
    expire: (key) => expire.run(key),
    close: () => db.close(),
  };
}
