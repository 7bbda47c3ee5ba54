import { randomInt } from 'node:crypto';
import type { Claim, Clock, Diagnosis, LockState } from '@holdfast/core';
import { BackendError } from '@holdfast/core';
import { Recent } from '../recent.js';
import type { Migrations, Tables } from '../schema.js';
import {
  type FreedRow,
  type Key,
  type KeyedGrant,
  LATEST,
  type Page,
  type ServerDialect,
  type Standing,
  type Taken,
} from '../server-store.js';
import { type Statement, statement } from '../statement.js';
import { FAR, LIVENESS, type Outlook, type Refusal } from '../store.js';
import { diagnoseMysql } from './mysql-diagnosis.js';

/** The few calls of a mysql2 connection that we use; `execute` prepares, and the older mysql has none. */
export interface MysqlConnection {
  execute?(sql: string, values: readonly unknown[], callback: MysqlCallback): unknown;
  query(sql: string, values: readonly unknown[], callback: MysqlCallback): unknown;
  destroy(): void;
}

type MysqlCallback = (error: Error | null, result?: unknown) => void;

type Row = Readonly<Record<string, unknown>>;

/** What MySQL says of a statement that changes rows. */
interface Header {
  readonly affectedRows: number;
  readonly insertId: number | string;
}

/**
 * MySQL and MariaDB. They have no RETURNING in common, but one thing as good: `LAST_INSERT_ID(n)` inside a statement
 * makes `n` part of its answer. So one statement takes the lock and answers its token, or `REFUSED`.
 *
 * Text goes in and comes out as bytes: no collation, no character set, no escaping depends on the session.
 */
export class MysqlDialect implements ServerDialect<MysqlConnection> {
  readonly #sql: MysqlStatements;
  readonly #tables: Tables;
  /** Names that have a row, most likely: they were taken here not long ago. */
  readonly #taken = new Recent<true>(KNOWN);
  #prepare = true;

  constructor(tables: Tables) {
    this.#tables = tables;
    this.#sql = statements(tables);
  }

  /** For a proxy that hands our statements to one server after another. */
  stopPreparing(): void {
    this.#prepare = false;
  }

  async detect(connection: MysqlConnection): Promise<'mariadb' | 'mysql'> {
    const [row] = (await ask(connection, 'SELECT CAST(VERSION() AS BINARY) AS version')) as Row[];
    const version = text(row?.version);
    const [major = 0, minor = 0] = (/(\d+)\.(\d+)/.exec(version) ?? []).slice(1).map(Number);
    const mariadb = /mariadb/i.test(version);
    const enough = mariadb ? major > 10 || (major === 10 && minor >= 4) : major >= 8;
    if (enough) return mariadb ? 'mariadb' : 'mysql';
    throw new BackendError(
      'BACKEND_REFUSED',
      `MySQL 8.0 or MariaDB 10.4, or later, is needed; the server says ${version}`,
    );
  }

  async migrate(connection: MysqlConnection): Promise<void> {
    if ((await this.#version(connection)) >= MYSQL_MIGRATIONS.length) return;
    // A schema change commits by itself here, so two that start at once take turns by a named lock.
    const lock = `CONCAT('holdfast ', LEFT(SHA1(CONCAT(DATABASE(), '${this.#tables.schema}')), 32))`;
    const [got] = (await ask(connection, `SELECT GET_LOCK(${lock}, 4) AS got`)) as Row[];
    if (Number(got?.got) !== 1)
      throw new BackendError('BACKEND_UNAVAILABLE', 'the schema is being changed by another');
    try {
      for (const migration of MYSQL_MIGRATIONS.slice(await this.#version(connection))) {
        for (const sql of migration(this.#tables)) await ask(connection, sql);
      }
    } finally {
      await ask(connection, `SELECT RELEASE_LOCK(${lock})`).catch(() => {});
    }
  }

  async probe(connection: MysqlConnection): Promise<void> {
    await this.#rows(connection, this.#sql.head, { id: Buffer.alloc(32) });
    await this.#rows(connection, this.#sql.inspect, { id: Buffer.alloc(32) });
  }

  /** A row that is free and not waited for is updated: an insert that turns out to be one costs the server twice as much. */
  async take(connection: MysqlConnection, key: Key, claim: Claim, place: Standing): Promise<Taken> {
    const parameters: TakeParameters = {
      id: key.id,
      prefix: Buffer.from(key.prefix),
      name: Buffer.from(key.name),
      owner: Buffer.from(claim.owner),
      metadata: claim.metadata === undefined ? null : Buffer.from(claim.metadata),
      ttl: micros(claim.ttl),
      mark: String(place.ticket ?? 0),
    };
    if (!place.placed && this.#taken.get(key.name)) {
      const { affectedRows, insertId } = await this.#change(connection, this.#sql.takeFree, parameters);
      if (affectedRows > 0) return { granted: true, fencingToken: BigInt(insertId) };
    }
    const take = place.placed ? this.#sql.take : this.#sql.takeNew;
    const { insertId } = await this.#change(connection, take, parameters);
    if (Number(insertId) === REFUSED) return { granted: false };
    this.#taken.set(key.name, true);
    if (place.placed)
      await this.#change(connection, this.#sql.leave, { id: key.id, owner: parameters.owner });
    return { granted: true, fencingToken: BigInt(insertId) };
  }

  async refusal(connection: MysqlConnection, key: Key, owner: string): Promise<Refusal> {
    const parameters = { id: key.id, owner: Buffer.from(owner) };
    const [row] = await this.#rows(connection, this.#sql.refusal, parameters);
    if (row === undefined) return {};
    const rest = Number(row.rest ?? 0) / 1000;
    const ahead = Number(row.ahead);
    return {
      ...(rest > 0 ? { retryAfter: rest } : {}),
      ...(rest > 0 && row.owner !== null
        ? { holder: { owner: text(row.owner), since: new Date(Number(row.acquired) / 1000) } }
        : {}),
      ...(row.ticket === null ? {} : { ticket: Number(row.ticket) }),
      ...(ahead < FAR ? { position: ahead + 1 } : {}),
    };
  }

  async enqueue(connection: MysqlConnection, key: Key, owner: string, { placed }: Standing): Promise<number> {
    const parameters = { id: key.id, owner: Buffer.from(owner) };
    // A place that died is not revived: others may have been served past it.
    if (placed) await this.#change(connection, this.#sql.leaveDead, parameters);
    const { insertId } = await this.#change(connection, this.#sql.enqueue, parameters);
    return Number(insertId);
  }

  async bury(connection: MysqlConnection, key: Key, owner: string): Promise<void> {
    await this.#change(connection, this.#sql.bury, { id: key.id, owner: Buffer.from(owner) });
  }

  async free(
    connection: MysqlConnection,
    key: Key,
    owner: string,
    options: { readonly keepFor: number; readonly placed: boolean },
  ): Promise<FreedRow> {
    const who = Buffer.from(owner);
    if (options.placed) await this.#change(connection, this.#sql.leave, { id: key.id, owner: who });
    const parameters = { id: key.id, owner: who, keepFor: micros(options.keepFor) };
    return freedRow(await this.#change(connection, this.#sql.free, parameters));
  }

  /**
   * The rows are stamped, in a column that counts only while a lock is held, to tell afterwards which were freed by this
   * statement. One that was ours before and is missing then was taken anew already, if the server counts more than there
   * are.
   */
  async freeMany(
    connection: MysqlConnection,
    claims: readonly { readonly key: Key; readonly owner: string }[],
  ): Promise<readonly FreedRow[]> {
    const { locks } = this.#tables;
    const stamp = -randomInt(1, 2 ** 47);
    const sorted = [...claims].sort((a, b) => Buffer.compare(a.key.id, b.key.id));
    const theirs = sorted.map(() => '(id = ? AND owner = ?)').join(' OR ');
    const owners = sorted.flatMap(({ key, owner }) => [key.id, Buffer.from(owner)]);
    const before = (await ask(connection, `SELECT id FROM ${locks} WHERE ${theirs}`, owners)) as Row[];
    const { affectedRows } = (await ask(
      connection,
      `UPDATE ${locks} SET owner = NULL, metadata = NULL, expires = ${NOW}, acquired = ${stamp} WHERE ${theirs}`,
      owners,
    )) as Header;
    const rows = (await ask(
      connection,
      `SELECT id, queued FROM ${locks} WHERE acquired = ${stamp} AND id IN (${sorted.map(() => '?').join(', ')})`,
      sorted.map(({ key }) => key.id),
    )) as Row[];
    const held = new Set(before.map(({ id }) => hex(id)));
    const marks = new Map(rows.map(({ id, queued }) => [hex(id), Number(queued)]));
    const takenAnew = affectedRows > rows.length;
    return claims.map(({ key }) => {
      const id = hex(key.id);
      const mark = marks.get(id);
      return { freed: mark !== undefined || (takenAnew && held.has(id)), mark: mark ?? 0 };
    });
  }

  async force(connection: MysqlConnection, key: Key, expected: bigint | undefined): Promise<FreedRow> {
    const parameters = { id: key.id, expected: expected?.toString() ?? null };
    return freedRow(await this.#change(connection, this.#sql.force, parameters));
  }

  async wake(connection: MysqlConnection, key: Key, mark: number): Promise<string | undefined> {
    const [head] = await this.#rows(connection, this.#sql.head, { id: key.id });
    if (head !== undefined) return Number(head.free) === 1 ? text(head.owner) : undefined;
    if (mark > 0) await this.#change(connection, this.#sql.unmark, { id: key.id, mark: String(mark) });
    return undefined;
  }

  async renew(connection: MysqlConnection, grants: readonly KeyedGrant[]): Promise<readonly boolean[]> {
    const ttls = new Map<number, KeyedGrant[]>();
    for (const grant of grants) ttls.set(grant.ttl, [...(ttls.get(grant.ttl) ?? []), grant]);
    const renewed = new Set<KeyedGrant>();
    for (const [ttl, same] of ttls) {
      // In the order of the rows, so that two batches never wait for each other.
      const sorted = [...same].sort((a, b) => Buffer.compare(a.key.id, b.key.id));
      const { locks } = this.#tables;
      const { affectedRows } = (await ask(
        connection,
        `UPDATE ${locks} SET expires = GREATEST(expires, ${NOW} + ${micros(ttl)}) WHERE ${these(sorted, 'fence')}`,
        sorted.flatMap(parts),
      )) as Header;
      // Where the session counts changed rows rather than found ones, or some are lost: ask which are ours.
      const ours = affectedRows === sorted.length ? sorted : await this.#those(connection, sorted, 'fence');
      for (const grant of ours) renewed.add(grant);
    }
    return grants.map((grant) => renewed.has(grant));
  }

  async wasForced(connection: MysqlConnection, grants: readonly KeyedGrant[]): Promise<readonly boolean[]> {
    const forced = new Set(await this.#those(connection, grants, 'forced'));
    return grants.map((grant) => forced.has(grant));
  }

  async adopt(connection: MysqlConnection, grant: KeyedGrant, newOwner: string): Promise<boolean> {
    const { affectedRows } = await this.#change(connection, this.#sql.adopt, {
      id: grant.key.id,
      owner: Buffer.from(grant.owner),
      newOwner: Buffer.from(newOwner),
      fence: grant.fencingToken.toString(),
      ttl: micros(grant.ttl),
    });
    return affectedRows > 0;
  }

  async inspect(connection: MysqlConnection, key: Key): Promise<LockState> {
    const [row] = await this.#rows(connection, this.#sql.inspect, { id: key.id });
    return stateOf(key.name, row, await this.#rows(connection, this.#sql.waiters, { id: key.id }));
  }

  async list(connection: MysqlConnection, prefix: string, start: string, after: Buffer): Promise<Page> {
    const rows = await this.#rows(connection, this.#sql.list, {
      prefix: Buffer.from(prefix),
      start: Buffer.from(start),
      after,
    });
    const waiters = await this.#waitersOf(connection, rows);
    const states = rows.map((row) => stateOf(text(row.name), row, waiters.get(hex(row.id)) ?? []));
    return { states, after: rows.length < PAGE ? undefined : (rows.at(-1)?.id as Buffer) };
  }

  /** Who waits for these locks, in order, by the row's key. */
  async #waitersOf(connection: MysqlConnection, locks: readonly Row[]): Promise<Map<string, Row[]>> {
    const waiters = new Map<string, Row[]>();
    if (locks.length === 0) return waiters;
    const rows = (await ask(
      connection,
      `SELECT id, owner FROM ${this.#tables.waiters}
        WHERE id IN (${locks.map(() => '?').join(', ')}) AND alive_until > ${NOW} ORDER BY ticket`,
      locks.map(({ id }) => id),
    )) as Row[];
    for (const row of rows) waiters.set(hex(row.id), [...(waiters.get(hex(row.id)) ?? []), row]);
    return waiters;
  }

  async refresh(
    connection: MysqlConnection,
    places: readonly { readonly key: Key; readonly owner: string }[],
  ): Promise<ReadonlySet<string>> {
    const { waiters } = this.#tables;
    const sorted = [...places].sort((a, b) => Buffer.compare(a.key.id, b.key.id));
    const these = sorted.map(() => '(id = ? AND owner = ?)').join(' OR ');
    const alive = `(${these}) AND alive_until > ${NOW}`;
    const values = sorted.flatMap(({ key, owner }) => [key.id, Buffer.from(owner)]);
    const { affectedRows } = (await ask(
      connection,
      `UPDATE ${waiters} SET alive_until = ${NOW} + ${LIVENESS * 1000} WHERE ${alive}`,
      values,
    )) as Header;
    if (affectedRows === places.length) return new Set(places.map(({ owner }) => owner));
    const rows = (await ask(connection, `SELECT owner FROM ${waiters} WHERE ${alive}`, values)) as Row[];
    return new Set(rows.map(({ owner }) => text(owner)));
  }

  async peek(
    connection: MysqlConnection,
    places: readonly { readonly key: Key; readonly ticket: number }[],
  ): Promise<readonly Outlook[]> {
    const { locks, waiters } = this.#tables;
    const one = `(SELECT GREATEST(0, COALESCE((SELECT expires FROM ${locks} WHERE id = ?), 0) - ${NOW}) AS rest,
      (SELECT COUNT(*) FROM (SELECT 1 FROM ${waiters}
        WHERE id = ? AND alive_until > ${NOW} AND ticket < ? LIMIT ${FAR}) AS a) AS ahead)`;
    const answer: Outlook[] = [];
    for (let start = 0; start < places.length; start += PEEKED) {
      const batch = places.slice(start, start + PEEKED);
      const rows = (await ask(
        connection,
        batch.map(() => one).join(' UNION ALL '),
        batch.flatMap(({ key, ticket }) => [key.id, key.id, ticket]),
      )) as Row[];
      for (const row of rows) {
        const ahead = Number(row.ahead);
        const expiresIn = Number(row.rest) / 1000;
        answer.push({ turn: ahead === 0 && expiresIn === 0, ahead, expiresIn });
      }
    }
    return answer;
  }

  /** Rows are chosen without locking them, and the condition is there twice: one may be taken before it is deleted. */
  async sweep(
    connection: MysqlConnection,
    prefix: string,
    retention: number,
    limit: number,
  ): Promise<number> {
    const { locks, waiters } = this.#tables;
    const dead = `GREATEST(alive_until, gone_until) < ${NOW}`;
    const old = `expires < ${NOW} - ${micros(retention)} AND fence < ${NOW} - ${micros(retention)}
      AND NOT EXISTS (SELECT 1 FROM ${waiters} AS w WHERE w.id = ${locks}.id)`;
    const gone = await this.#sweepTable(connection, waiters, 'ticket', dead, limit, []);
    return gone + (await this.#sweepTable(connection, locks, 'id', `prefix = ? AND ${old}`, limit, [prefix]));
  }

  async diagnose(
    connection: MysqlConnection,
    { clock }: { readonly clock: Clock },
  ): Promise<readonly Diagnosis[]> {
    const asText = async (sql: string) => {
      const rows = (await ask(connection, sql)) as Row[];
      return rows.map((row) => Object.fromEntries(Object.entries(row).map(([k, v]) => [k, text(v)])));
    };
    return diagnoseMysql(asText, { clock, product: await this.detect(connection) });
  }

  async #sweepTable(
    connection: MysqlConnection,
    table: string,
    column: string,
    condition: string,
    limit: number,
    values: readonly string[],
  ): Promise<number> {
    const bytes = values.map((value) => Buffer.from(value));
    const chosen = (await ask(
      connection,
      `SELECT ${column} AS k FROM ${table} WHERE ${condition} LIMIT ${limit}`,
      bytes,
    )) as Row[];
    if (chosen.length === 0) return 0;
    const { affectedRows } = (await ask(
      connection,
      `DELETE FROM ${table} WHERE ${column} IN (${chosen.map(() => '?').join(', ')}) AND ${condition}`,
      [...chosen.map(({ k }) => k), ...bytes],
    )) as Header;
    return affectedRows;
  }

  /** Those of the grants whose row has their token in that column (and their owner, where they still hold). */
  async #those(
    connection: MysqlConnection,
    grants: readonly KeyedGrant[],
    column: 'fence' | 'forced',
  ): Promise<KeyedGrant[]> {
    const rows = (await ask(
      connection,
      `SELECT id, CAST(${column} AS CHAR) AS token FROM ${this.#tables.locks} WHERE ${these(grants, column)}`,
      grants.flatMap((grant) => parts(grant).slice(0, column === 'fence' ? 3 : 2)),
    )) as Row[];
    const found = new Set(rows.map(({ id, token }) => `${(id as Buffer).toString('hex')} ${text(token)}`));
    return grants.filter(({ key, fencingToken }) => found.has(`${key.id.toString('hex')} ${fencingToken}`));
  }

  async #version(connection: MysqlConnection): Promise<number> {
    const [made] = (await ask(
      connection,
      'SELECT COUNT(*) AS n FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?',
      [this.#tables.schema],
    )) as Row[];
    if (Number(made?.n) === 0) return 0;
    const [row] = (await ask(
      connection,
      `SELECT MAX(version) AS version FROM ${this.#tables.schema}`,
    )) as Row[];
    return Number(row?.version ?? 0);
  }

  async #rows<P extends object>(
    connection: MysqlConnection,
    { text: sql, values }: Statement<P>,
    parameters: P,
  ) {
    return (await this.#send(connection, sql, values(parameters))) as readonly Row[];
  }

  async #change<P extends object>(
    connection: MysqlConnection,
    { text: sql, values }: Statement<P>,
    parameters: P,
  ) {
    return (await this.#send(connection, sql, values(parameters))) as Header;
  }

  #send(connection: MysqlConnection, sql: string, values: readonly unknown[]): Promise<unknown> {
    if (!this.#prepare || connection.execute === undefined) return ask(connection, sql, values);
    return new Promise((resolve, reject) => {
      connection.execute?.(sql, values, (error, result) =>
        error === null ? resolve(result) : reject(error),
      );
    });
  }
}

/** A statement whose text varies, so that preparing it would not pay. */
function ask(connection: MysqlConnection, sql: string, values: readonly unknown[] = []): Promise<unknown> {
  return new Promise((resolve, reject) => {
    connection.query(sql, values, (error, result) => (error === null ? resolve(result) : reject(error)));
  });
}

/** A condition that finds these grants by the key of their rows. */
function these(grants: readonly KeyedGrant[], column: 'fence' | 'forced'): string {
  const owner = column === 'fence' ? ' AND owner = ?' : ' AND forced <> 0';
  return grants.map(() => `(id = ? AND ${column} = CAST(? AS SIGNED)${owner})`).join(' OR ');
}

function parts({ key, fencingToken, owner }: KeyedGrant): [Buffer, string, Buffer] {
  return [key.id, fencingToken.toString(), Buffer.from(owner)];
}

function freedRow({ affectedRows, insertId }: Header): FreedRow {
  return { freed: affectedRows > 0, mark: affectedRows > 0 ? Number(insertId) : 0 };
}

function stateOf(name: string, row: Row | undefined, waiting: readonly Row[]): LockState {
  const waiters = waiting.map(({ owner }, index) => ({ owner: text(owner), position: index + 1 }));
  const rest = Number(row?.rest ?? 0) / 1000;
  if (row === undefined || !(rest > 0)) return { name, held: false, waiters };
  const grant = { fencingToken: BigInt(text(row.fence)), expiresIn: rest };
  if (row.owner === null) return { name, held: true, ...grant, waiters };
  return {
    name,
    held: true,
    owner: text(row.owner),
    ...grant,
    acquiredAt: new Date(Number(row.acquired) / 1000),
    ...(row.metadata === null ? {} : { metadata: text(row.metadata) }),
    waiters,
  };
}

function text(value: unknown): string {
  return Buffer.isBuffer(value) ? value.toString('utf8') : String(value);
}

function hex(id: unknown): string {
  return (id as Buffer).toString('hex');
}

function micros(ms: number): string {
  return String(Math.ceil(ms * 1000));
}

const PAGE = 200;

/** Places in one statement of `peek`. */
const PEEKED = 50;

/** Names of which is remembered that they have a row. */
const KNOWN = 1000;

/** No token is 1: tokens are microseconds since 1970. */
const REFUSED = 1;

/** Whole microseconds since the epoch, the same throughout a statement, in no time zone. */
const NOW = `TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(6))`;

interface TakeParameters {
  readonly id: Buffer;
  readonly prefix: Buffer;
  readonly name: Buffer;
  readonly owner: Buffer;
  readonly metadata: Buffer | null;
  readonly ttl: string;
  readonly mark: string;
}

type MysqlStatements = ReturnType<typeof statements>;

function statements({ locks, waiters }: Tables) {
  const question = <P extends object>(source: string) => statement<P>('question', source);
  const integer = (name: string) => `CAST(:${name} AS SIGNED)`;
  const ownTicket = `(SELECT o.ticket FROM ${waiters} AS o WHERE o.id = :id AND o.owner = :owner AND o.alive_until > ${NOW})`;
  const before = `w.id = :id AND w.alive_until > ${NOW} AND w.ticket < COALESCE(${ownTicket}, 9223372036854775807)`;
  const mine = 'l.owner <=> :owner';
  const free = '(l.expires <= t.now AND NOT t.blocked)';
  const rest = `GREATEST(0, expires - ${NOW}) AS rest`;
  // "blocked": somebody alive is before us in the queue, or we have been buried. A row that is not there yet is made
  // free then. MySQL assigns from left to right, each seeing what came before: first the token, by owner and expiry
  // as they were; the owner; last the expiry, by the owner as it is now. Who is kept back marks the row, as who waits does:
  // the mark of those who wait may have gone with a row that somebody deleted.
  // From a select, although values would do: reads of an INSERT … VALUES lock the rows that they see, at any isolation.
  const take = (blockers: string) =>
    question<TakeParameters>(
      `
      INSERT INTO ${locks} (id, prefix, name, owner, fence, acquired, expires, metadata, queued, forced)
      SELECT :id, :prefix, :name, IF(t.blocked, NULL, :owner), IF(t.blocked, t.now + 0 * LAST_INSERT_ID(${REFUSED}),
        LAST_INSERT_ID(t.now)), t.now, IF(t.blocked, t.now, t.now + ${integer('ttl')}), IF(t.blocked, NULL, :metadata),
        GREATEST(${integer('mark')}, t.blocked), 0
      FROM (SELECT EXISTS (SELECT 1 FROM ${waiters} AS w WHERE ${blockers}) OR EXISTS (SELECT 1 FROM ${waiters} AS g
          WHERE g.id = :id AND g.owner = :owner AND g.gone_until > 0) AS blocked, ${NOW} AS now) AS t
      ON DUPLICATE KEY UPDATE
        fence = IF(${mine}, LAST_INSERT_ID(l.fence), IF(${free}, LAST_INSERT_ID(GREATEST(l.fence + 1, t.now)),
          l.fence + 0 * LAST_INSERT_ID(${REFUSED}))),
        acquired = IF(NOT (${mine}) AND ${free}, t.now, l.acquired),
        metadata = IF(NOT (${mine}) AND ${free}, :metadata, l.metadata),
        owner = IF(${mine} OR ${free}, :owner, l.owner),
        expires = IF(${mine}, GREATEST(l.expires, t.now + ${integer('ttl')}), l.expires),
        queued = GREATEST(l.queued, ${integer('mark')}, t.blocked)`.replaceAll('l.', `${locks}.`),
    );
  return {
    // Who has no place yet is behind all who wait.
    takeNew: take(`w.id = :id AND w.alive_until > ${NOW}`),
    take: take(before),
    // Whoever waits marks the row, or is about to. A place of our own, or our burial, makes it the business of the other
    // statement. The mark comes first: where it stands, the waiters need not be read.
    takeFree: question<TakeParameters>(`
      UPDATE ${locks} SET fence = LAST_INSERT_ID(GREATEST(fence + 1, ${NOW})), acquired = ${NOW}, metadata = :metadata,
        expires = ${NOW} + ${integer('ttl')}, owner = :owner
      WHERE id = :id AND expires <= ${NOW} AND queued = 0 AND NOT (owner <=> :owner) AND NOT EXISTS
        (SELECT 1 FROM ${waiters} AS w WHERE w.id = :id AND (w.alive_until > ${NOW} OR w.owner = :owner))`),
    refusal: question<{ id: Buffer; owner: Buffer }>(`
      SELECT l.owner, CAST(l.acquired AS CHAR) AS acquired, ${rest}, ${ownTicket} AS ticket,
        (SELECT COUNT(*) FROM (SELECT 1 FROM ${waiters} AS w WHERE ${before} LIMIT ${FAR}) AS a) AS ahead
      FROM (SELECT 1) AS one LEFT JOIN ${locks} AS l ON l.id = :id`),

    leave: question<{ id: Buffer; owner: Buffer }>(
      `DELETE FROM ${waiters} WHERE id = :id AND owner = :owner AND gone_until = 0`,
    ),
    leaveDead: question<{ id: Buffer; owner: Buffer }>(
      `DELETE FROM ${waiters} WHERE id = :id AND owner = :owner AND gone_until = 0 AND alive_until <= ${NOW}`,
    ),
    enqueue: question<{ id: Buffer; owner: Buffer }>(`
      INSERT INTO ${waiters} (id, owner, alive_until, gone_until) VALUES (:id, :owner, ${NOW} + ${LIVENESS * 1000}, 0)
      ON DUPLICATE KEY UPDATE ticket = LAST_INSERT_ID(ticket),
        alive_until = IF(gone_until > 0, 0, ${NOW} + ${LIVENESS * 1000})`),
    bury: question<{ id: Buffer; owner: Buffer }>(`
      INSERT INTO ${waiters} (id, owner, alive_until, gone_until) VALUES (:id, :owner, 0, ${NOW} + ${LATEST * 1000})
      ON DUPLICATE KEY UPDATE alive_until = 0, gone_until = ${NOW} + ${LATEST * 1000}`),
    free: question<{ id: Buffer; owner: Buffer; keepFor: string }>(`
      UPDATE ${locks} SET queued = LAST_INSERT_ID(queued), owner = NULL, metadata = NULL,
        expires = ${NOW} + ${integer('keepFor')}
      WHERE id = :id AND owner = :owner`),
    force: question<{ id: Buffer; expected: string | null }>(`
      UPDATE ${locks} SET queued = LAST_INSERT_ID(queued), owner = NULL, metadata = NULL, forced = fence, expires = ${NOW}
      WHERE id = :id AND expires > ${NOW} AND (:expected IS NULL OR fence = ${integer('expected')})`),
    head: question<{ id: Buffer }>(`
      SELECT w.owner, EXISTS (SELECT 1 FROM ${locks} AS l WHERE l.id = :id AND l.expires <= ${NOW}) AS free
      FROM ${waiters} AS w WHERE w.id = :id AND w.alive_until > ${NOW} ORDER BY w.ticket LIMIT 1`),
    unmark: question<{ id: Buffer; mark: string }>(`
      UPDATE ${locks} SET queued = 0 WHERE id = :id AND queued = ${integer('mark')}
        AND NOT EXISTS (SELECT 1 FROM ${waiters} AS w WHERE w.id = :id AND w.gone_until = 0)`),

    adopt: question<{ id: Buffer; owner: Buffer; newOwner: Buffer; fence: string; ttl: string }>(`
      UPDATE ${locks} SET owner = :newOwner, expires = GREATEST(expires, ${NOW} + ${integer('ttl')})
      WHERE id = :id AND owner IN (:owner, :newOwner) AND fence = ${integer('fence')} AND expires > ${NOW}`),
    inspect: question<{ id: Buffer }>(`
      SELECT owner, CAST(fence AS CHAR) AS fence, CAST(acquired AS CHAR) AS acquired, metadata, ${rest}
      FROM ${locks} WHERE id = :id`),
    waiters: question<{ id: Buffer }>(
      `SELECT owner FROM ${waiters} WHERE id = :id AND alive_until > ${NOW} ORDER BY ticket`,
    ),
    list: question<{ prefix: Buffer; start: Buffer; after: Buffer }>(`
      SELECT id, name, owner, CAST(fence AS CHAR) AS fence, CAST(acquired AS CHAR) AS acquired, metadata, ${rest}
      FROM ${locks}
      WHERE prefix = :prefix AND id > :after AND LEFT(name, LENGTH(:start)) = :start
        AND (expires > ${NOW} OR EXISTS (SELECT 1 FROM ${waiters} AS w WHERE w.id = ${locks}.id AND w.alive_until > ${NOW}))
      ORDER BY id LIMIT ${PAGE}`),
  };
}

/** The schema of MySQL and MariaDB, version by version. */
export const MYSQL_MIGRATIONS: Migrations = [
  ({ locks, waiters, schema }) => [
    `CREATE TABLE IF NOT EXISTS ${locks} (
      id BINARY(32) NOT NULL PRIMARY KEY, prefix VARBINARY(64) NOT NULL, name VARBINARY(512) NOT NULL,
      owner VARBINARY(512), fence BIGINT NOT NULL, acquired BIGINT NOT NULL, expires BIGINT NOT NULL,
      metadata VARBINARY(1024), queued BIGINT NOT NULL, forced BIGINT NOT NULL
    ) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS ${waiters} (
      ticket BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, id BINARY(32) NOT NULL, owner VARBINARY(512) NOT NULL,
      alive_until BIGINT NOT NULL, gone_until BIGINT NOT NULL, UNIQUE KEY (id, owner), KEY (id, ticket)
    ) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS ${schema} (version INT NOT NULL PRIMARY KEY) ENGINE = InnoDB`,
    `INSERT IGNORE INTO ${schema} (version) VALUES (1)`,
  ],
];
