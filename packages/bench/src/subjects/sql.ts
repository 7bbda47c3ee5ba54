import { randomUUID } from 'node:crypto';
import { Verrou } from '@verrou/core';
import { knexStore } from '@verrou/core/drivers/knex';
import knexPackage, { type Knex } from 'knex';
import type { Backend, Subject } from '../subject.js';
import { holdfast } from './holdfast.js';

type Database = Extract<Backend, 'postgres' | 'mariadb'>;

/** Connections of each subject, at most: the same for all. */
const POOL = 10;

const CLIENTS = { postgres: 'pg', mariadb: 'mysql2' } as const;

function open(database: Database, url: string): Knex {
  return knexPackage.knex({
    client: CLIENTS[database],
    connection: url.replace('mariadb://', 'mysql://'),
    pool: { min: 1, max: POOL },
  });
}

const TABLE = {
  postgres:
    'create table if not exists raw_locks (name varchar(64) primary key, owner varchar(64), expires bigint)',
  mariadb:
    'create table if not exists raw_locks (name varchar(64) primary key, owner varchar(64), expires bigint)',
};

const UPSERT = {
  postgres: `insert into raw_locks (name, owner, expires) values (?, ?, ?)
    on conflict (name) do update set owner = excluded.owner, expires = excluded.expires
    where raw_locks.expires < ? returning owner`,
  mariadb: `insert into raw_locks (name, owner, expires) values (?, ?, ?)
    on duplicate key update owner = if(expires < ?, values(owner), owner), expires = if(owner = values(owner), values(expires), expires)`,
};

/** One upsert that takes the row if it is free or expired, and one update that frees it by owner. */
function raw(database: Database): Subject {
  return {
    name: 'raw upsert + update',
    backend: database,
    kind: 'floor',
    waits: false,
    async open(url) {
      const db = open(database, url);
      await db.raw(TABLE[database]);
      return {
        async acquire(name) {
          const owner = randomUUID();
          const now = Date.now();
          await db.raw(UPSERT[database], [name, owner, now + 30_000, now]);
          return () => db.raw('update raw_locks set expires = 0 where name = ? and owner = ?', [name, owner]);
        },
        probe: () => db.raw('select 1'),
        close: () => db.destroy(),
      };
    },
  };
}

function verrou(database: Database): Subject {
  return {
    name: '@verrou/core (knex)',
    backend: database,
    kind: 'peer',
    waits: true,
    async open(url) {
      const db = open(database, url);
      const driver = knexStore({ connection: db, tableName: 'verrou' });
      const locks = new Verrou({ default: 'sql', stores: { sql: { driver } } });
      return {
        async acquire(name, ttl = 30_000) {
          const lock = locks.createLock(name, ttl);
          if (!(await lock.acquire())) throw new Error('not acquired');
          return () => lock.release();
        },
        close: () => db.destroy(),
      };
    },
  };
}

export const postgres = [raw('postgres'), holdfast('postgres', `?pool=${POOL}`), verrou('postgres')];
export const mariadb = [raw('mariadb'), holdfast('mariadb', `?pool=${POOL}`), verrou('mariadb')];
