import { randomUUID } from 'node:crypto';
import Database from 'libsql';
import type { Subject } from '../subject.js';
import { holdfast } from './holdfast.js';

/** One upsert that takes the row if it is free or expired, and one update that frees it by owner; synchronous, as the client is. */
const raw: Subject = {
  name: 'raw upsert + update',
  backend: 'sqlite',
  kind: 'floor',
  waits: false,
  async open(url) {
    // A file of its own beside the other's, with the same settings.
    const database = new Database(`${url.replace('sqlite:', '')}.raw`, { timeout: 5000 });
    database.exec('PRAGMA journal_mode = wal');
    database.exec('PRAGMA synchronous = NORMAL');
    database.exec(
      'create table if not exists raw_locks (name text primary key, owner text, expires integer)',
    );
    const take = database.prepare(
      `insert into raw_locks (name, owner, expires) values (?, ?, ?)
       on conflict (name) do update set owner = excluded.owner, expires = excluded.expires
       where raw_locks.expires < ?`,
    );
    const free = database.prepare('update raw_locks set expires = 0 where name = ? and owner = ?');
    const nothing = database.prepare('select 1');
    return {
      async acquire(name) {
        const owner = randomUUID();
        const now = Date.now();
        if (take.run(name, owner, now + 30_000, now).changes === 0) throw new Error('contended');
        return async () => free.run(name, owner);
      },
      probe: async () => nothing.all(),
      close: async () => database.close(),
    };
  },
};

export const sqlite = [raw, holdfast('sqlite')];
