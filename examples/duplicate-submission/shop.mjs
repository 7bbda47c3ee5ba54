import { join } from 'node:path';
import Database from 'libsql';
import { takes } from '../instances.mjs';

/** The shop's database, and the payment provider that it calls. */
export function openShop(folder) {
  const db = new Database(join(folder, 'shop.db'), { timeout: 5000 });
  db.exec(`
    CREATE TABLE IF NOT EXISTS payments (order_number TEXT PRIMARY KEY, receipt TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS provider_calls (order_number TEXT NOT NULL);
  `);
  const find = db.prepare('SELECT receipt FROM payments WHERE order_number = ?');
  const insert = db.prepare('INSERT INTO payments VALUES (?, ?) ON CONFLICT DO NOTHING');
  const called = db.prepare('INSERT INTO provider_calls VALUES (?)');
  const count = (table) => db.prepare(`SELECT count(*) AS n FROM ${table} WHERE order_number = ?`);
  const payments = count('payments');
  const calls = count('provider_calls');
  return {
    paymentOf: (order) => find.get(order)?.receipt,
    store: (order, receipt) => insert.run(order, receipt),
    payments: (order) => payments.get(order).n,
    providerCalls: (order) => calls.get(order).n,
    close: () => db.close(),
    /** Slow, and not for free. */
    async charge(order) {
      called.run(order);
      await takes(300);
      return `receipt ${process.pid} for ${order}`;
    },
  };
}
