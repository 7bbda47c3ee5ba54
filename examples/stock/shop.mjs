import { join } from 'node:path';
import Database from 'libsql';

/** The shop's database. */
export function openShop(folder) {
  const db = new Database(join(folder, 'shop.db'), { timeout: 5000 });
  db.exec('CREATE TABLE IF NOT EXISTS stock (item TEXT PRIMARY KEY, n INTEGER NOT NULL)');
  const fill = db.prepare('INSERT INTO stock VALUES (?, ?)');
  const read = db.prepare('SELECT n FROM stock WHERE item = ?');
  const write = db.prepare('UPDATE stock SET n = ? WHERE item = ?');
  const take = db.prepare('UPDATE stock SET n = n - 1 WHERE item = ? AND n > 0');
  return {
    fill: (item, n) => fill.run(item, n),
    read: (item) => read.get(item).n,
    write: (item, n) => write.run(n, item),
    /** One atomic statement: true when there was one left. */
    take: (item) => take.run(item).changes === 1,
    close: () => db.close(),
  };
}
