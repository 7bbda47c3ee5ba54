import { join } from 'node:path';
import Database from 'better-sqlite3';
import { takes } from '../instances.mjs';

/** The shop's database, and the payment provider that it calls. */
export function openShop(folder) {
  const db = new Database(join(folder, 'shop.db'));
  db.exec(`
    CREATE TABLE IF NOT EXISTS payments (order_number TEXT PRIMARY KEY, receipt TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS provider_calls (order_number TEXT NOT NULL);
  `);
  const find = db.prepare('SELECT receipt FROM payments WHERE order_number = ?').pluck();
  const insert = db.prepare('INSERT INTO payments VALUES (?, ?) ON CONFLICT DO NOTHING');
  const called = db.prepare('INSERT INTO provider_calls VALUES (?)');
  const count = (table) => db.prepare(`SELECT count(*) FROM ${table} WHERE order_number = ?`).pluck();
  const payments = count('payments');
  const calls = count('provider_calls');
  return {
    paymentOf: (order) => find.get(order),
    store: (order, receipt) => insert.run(order, receipt),
    payments: (order) => payments.get(order),
    providerCalls: (order) => calls.get(order),
    close: () => db.close(),
    /** Slow, and not for free. */
    async charge(order) {
      called.run(order);
      await takes(300);
      return `receipt ${process.pid} for ${order}`;
    },
  };
}
