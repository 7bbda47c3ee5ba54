import type { Claim, Clock, Diagnosis, LockState } from '@holdfast/core';
import { BackendError } from '@holdfast/core';
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
import { statement } from '../statement.js';
import { FAR, LIVENESS, type Outlook, type Refusal } from '../store.js';
import { diagnosePostgres } from './postgres-diagnosis.js';

/** What we use of a pg client. */
export interface PostgresConnection {
  /** As the server, or a pooler before it, said when it connected. */
  readonly processID?: number | null;
  query(query: {
    readonly name?: string;
    readonly text: string;
    readonly values: readonly unknown[];
  }): Promise<{ readonly rows: readonly Record<string, unknown>[]; readonly rowCount: number | null }>;
}

/**
 * PostgreSQL. Each operation is one statement; `now` is read once for each, at its start: after a wait for the row it is
 * behind, which makes a lock look held a little longer and a grant end a little sooner than it must, never the
 * reverse, since the client counts from before it sent the statement.
 */
export class PostgresDialect implements ServerDialect<PostgresConnection> {
  readonly #sql: PostgresStatements;
  readonly #tables: Tables;
  readonly #inbox: () => string | null;
  #prepare = true;

  /** @param inbox the channel on which this instance hears of its turns, or null while it does not */
  constructor(tables: Tables, inbox: () => string | null) {
    this.#tables = tables;
    this.#sql = statements(tables);
    this.#inbox = inbox;
  }

  /** Prepared statements belong to a connection, which a pooler changes behind our back. */
  stopPreparing(): void {
    this.#prepare = false;
  }

  async detect(connection: PostgresConnection): Promise<string> {
    const [row] = await this.#rows(connection, this.#sql.version, {});
    const version = String(row?.version);
    if (!/^PostgreSQL/.test(version) || Number(row?.number) < 120_000) {
      throw new BackendError(
        'BACKEND_REFUSED',
        `PostgreSQL 12 or later is needed; the server says ${version}`,
      );
    }
    return 'postgres';
  }

  async migrate(connection: PostgresConnection): Promise<void> {
    if ((await this.#version(connection)) >= POSTGRES_MIGRATIONS.length) return;
    const run = (text: string) => connection.query({ text, values: [] });
    await run('BEGIN');
    try {
      // Two that start at once: the second waits for the first, and finds the work done. In a transaction, so that it
      // works through a pooler too.
      await run(`SELECT pg_advisory_xact_lock(hashtext('holdfast ${this.#tables.schema}'))`);
      for (const migration of POSTGRES_MIGRATIONS.slice(await this.#version(connection))) {
        for (const text of migration(this.#tables)) await run(text);
      }
      await run('COMMIT');
    } catch (error) {
      await run('ROLLBACK').catch(() => {});
      throw error;
    }
  }

  async probe(connection: PostgresConnection): Promise<void> {
    await this.#rows(connection, this.#sql.peek, { ids: [], tickets: [] });
  }

  async take(connection: PostgresConnection, key: Key, claim: Claim, place: Standing): Promise<Taken> {
    const [row] = await this.#rows(connection, place.placed ? this.#sql.take : this.#sql.takeNew, {
      ...key,
      name: Buffer.from(key.name),
      owner: claim.owner,
      metadata: claim.metadata === undefined ? null : Buffer.from(claim.metadata),
      ttl: micros(claim.ttl),
      mark: place.ticket ?? 0,
    });
    if (row?.owner === claim.owner) return { granted: true, fencingToken: BigInt(String(row.fence)) };
    return place.placed ? { granted: false, refusal: refusalOf(row) } : { granted: false };
  }

  async refusal(connection: PostgresConnection, key: Key, owner: string): Promise<Refusal> {
    const [row] = await this.#rows(connection, this.#sql.refusal, { id: key.id, owner });
    return refusalOf(row);
  }

  async enqueue(connection: PostgresConnection, key: Key, owner: string, _place: Standing): Promise<number> {
    const inbox = this.#inbox();
    const [row] = await this.#rows(connection, this.#sql.enqueue, { id: key.id, owner, inbox });
    return Number(row?.ticket ?? 0);
  }

  async bury(connection: PostgresConnection, key: Key, owner: string): Promise<void> {
    await this.#rows(connection, this.#sql.bury, { id: key.id, owner });
  }

  async free(
    connection: PostgresConnection,
    key: Key,
    owner: string,
    { keepFor, placed }: { readonly keepFor: number; readonly placed: boolean },
  ): Promise<FreedRow> {
    const rows = await this.#rows(connection, placed ? this.#sql.leaveAndFree : this.#sql.free, {
      id: key.id,
      owner,
      keepFor: micros(keepFor),
    });
    return freedRow(rows);
  }

  async freeMany(
    connection: PostgresConnection,
    claims: readonly { readonly key: Key; readonly owner: string }[],
  ): Promise<readonly FreedRow[]> {
    const rows = await this.#rows(connection, this.#sql.freeMany, {
      ids: claims.map(({ key }) => key.id),
      owners: claims.map(({ owner }) => owner),
    });
    const marks = new Map(rows.map(({ n, queued }) => [Number(n), Number(queued)]));
    return claims.map((_, index) => ({ freed: marks.has(index + 1), mark: marks.get(index + 1) ?? 0 }));
  }

  async force(connection: PostgresConnection, key: Key, expected: bigint | undefined): Promise<FreedRow> {
    const parameters = { id: key.id, expected: expected?.toString() ?? null };
    return freedRow(await this.#rows(connection, this.#sql.force, parameters));
  }

  async wake(connection: PostgresConnection, key: Key, mark: number): Promise<string | undefined> {
    const [row] = await this.#rows(connection, this.#sql.wake, { id: key.id, mark });
    return row === undefined ? undefined : String(row.owner);
  }

  async renew(connection: PostgresConnection, grants: readonly KeyedGrant[]): Promise<readonly boolean[]> {
    const rows = await this.#rows(connection, this.#sql.renew, {
      ...columns(grants),
      ttls: grants.map(({ ttl }) => micros(ttl)),
    });
    return flags(rows, grants.length);
  }

  async wasForced(
    connection: PostgresConnection,
    grants: readonly KeyedGrant[],
  ): Promise<readonly boolean[]> {
    return flags(await this.#rows(connection, this.#sql.wasForced, columns(grants)), grants.length);
  }

  async adopt(connection: PostgresConnection, grant: KeyedGrant, newOwner: string): Promise<boolean> {
    const rows = await this.#rows(connection, this.#sql.adopt, {
      id: grant.key.id,
      owner: grant.owner,
      fence: grant.fencingToken.toString(),
      ttl: micros(grant.ttl),
      newOwner,
    });
    return rows.length > 0;
  }

  async inspect(connection: PostgresConnection, key: Key): Promise<LockState> {
    const [row] = await this.#rows(connection, this.#sql.inspect, { id: key.id });
    return stateOf(key.name, row);
  }

  async list(connection: PostgresConnection, prefix: string, start: string, after: Buffer): Promise<Page> {
    const rows = await this.#rows(connection, this.#sql.list, {
      prefix,
      start: Buffer.from(start),
      after,
      page: PAGE,
    });
    const states = rows.map((row) => stateOf((row.name as Buffer).toString(), row));
    return { states, after: rows.length < PAGE ? undefined : (rows.at(-1)?.id as Buffer) };
  }

  async refresh(
    connection: PostgresConnection,
    places: readonly { readonly key: Key; readonly owner: string }[],
  ): Promise<ReadonlySet<string>> {
    const rows = await this.#rows(connection, this.#sql.refresh, {
      ids: places.map(({ key }) => key.id),
      owners: places.map(({ owner }) => owner),
      inbox: this.#inbox(),
    });
    return new Set(rows.map(({ owner }) => String(owner)));
  }

  async peek(
    connection: PostgresConnection,
    places: readonly { readonly key: Key; readonly ticket: number }[],
  ): Promise<readonly Outlook[]> {
    const rows = await this.#rows(connection, this.#sql.peek, {
      ids: places.map(({ key }) => key.id),
      tickets: places.map(({ ticket }) => ticket),
    });
    return rows.map((row) => {
      const ahead = Number(row.ahead);
      const expiresIn = Math.max(0, Number(row.rest) / 1000);
      return { turn: ahead === 0 && expiresIn === 0, ahead, expiresIn };
    });
  }

  async sweep(
    connection: PostgresConnection,
    prefix: string,
    retention: number,
    limit: number,
  ): Promise<number> {
    const waiters = await this.#rows(connection, this.#sql.sweepWaiters, { limit });
    const locks = await this.#rows(connection, this.#sql.sweepLocks, {
      prefix,
      retention: micros(retention),
      limit,
    });
    return waiters.length + locks.length;
  }

  diagnose(
    connection: PostgresConnection,
    present: { readonly clock: Clock; readonly pushes: boolean },
  ): Promise<readonly Diagnosis[]> {
    return diagnosePostgres(connection, present);
  }

  async #version(connection: PostgresConnection): Promise<number> {
    const { rows } = await connection.query({
      text: 'SELECT to_regclass($1) IS NOT NULL AS made',
      values: [this.#tables.schema],
    });
    if (rows[0]?.made !== true) return 0;
    const found = await connection.query({
      text: `SELECT coalesce(max(version), 0)::int AS version FROM ${this.#tables.schema}`,
      values: [],
    });
    return Number(found.rows[0]?.version);
  }

  async #rows<P extends object>(
    connection: PostgresConnection,
    { name, text, values }: { name: string; text: string; values(parameters: P): unknown[] },
    parameters: P,
  ): Promise<readonly Record<string, unknown>[]> {
    const query = { text, values: values(parameters) };
    const { rows } = await connection.query(this.#prepare ? { name, ...query } : query);
    return rows;
  }
}

const PAGE = 200;

function micros(ms: number): number {
  return Math.ceil(ms * 1000);
}

function columns(grants: readonly KeyedGrant[]) {
  return {
    ids: grants.map(({ key }) => key.id),
    owners: grants.map(({ owner }) => owner),
    fences: grants.map(({ fencingToken }) => fencingToken.toString()),
  };
}

/** `rows` carry the positions, from 1, of those for which it is true. */
function flags(rows: readonly Record<string, unknown>[], length: number): boolean[] {
  const answer = new Array<boolean>(length).fill(false);
  for (const { n } of rows) answer[Number(n) - 1] = true;
  return answer;
}

function freedRow(rows: readonly Record<string, unknown>[]): FreedRow {
  return { freed: rows.length > 0, mark: Number(rows[0]?.queued ?? 0) };
}

function refusalOf(row: Record<string, unknown> | undefined): Refusal {
  if (row === undefined) return {};
  const rest = Number(row.rest ?? 0) / 1000;
  const held = rest > 0 && typeof row.owner === 'string';
  const ahead = Number(row.ahead);
  return {
    ...(rest > 0 ? { retryAfter: rest } : {}),
    ...(held ? { holder: { owner: String(row.owner), since: new Date(Number(row.acquired) / 1000) } } : {}),
    ...(row.ticket === null || row.ticket === undefined ? {} : { ticket: Number(row.ticket) }),
    ...(ahead < FAR ? { position: ahead + 1 } : {}),
  };
}

function stateOf(name: string, row: Record<string, unknown> | undefined): LockState {
  const owners = (row?.waiting ?? []) as readonly string[];
  const waiters = owners.map((owner, index) => ({ owner, position: index + 1 }));
  const rest = Number(row?.rest ?? 0) / 1000;
  if (row === undefined || !(rest > 0)) return { name, held: false, waiters };
  const grant = { fencingToken: BigInt(String(row.fence)), expiresIn: rest };
  if (typeof row.owner !== 'string') return { name, held: true, ...grant, waiters };
  return {
    name,
    held: true,
    owner: row.owner,
    ...grant,
    acquiredAt: new Date(Number(row.acquired) / 1000),
    ...(row.metadata === null ? {} : { metadata: String(row.metadata) }),
    waiters,
  };
}

/** Whole microseconds since the epoch. Not `now()`, which stands still in a transaction; never a date, which has a zone. */
const NOW = '(extract(epoch from clock_timestamp()) * 1000000)::bigint';

interface TakeParameters {
  readonly id: Buffer;
  readonly prefix: string;
  readonly name: Buffer;
  readonly owner: string;
  readonly metadata: Buffer | null;
  readonly ttl: number;
  readonly mark: number;
}

interface FreeParameters {
  readonly id: Buffer;
  readonly owner: string;
  readonly keepFor: number;
}

type PostgresStatements = ReturnType<typeof statements>;

function statements({ locks, waiters }: Tables) {
  const numbered = <P extends object>(text: string) => statement<P>('numbered', text);
  const clock = `clock AS MATERIALIZED (SELECT ${NOW} AS now)`;
  const ownTicket = `(SELECT ticket FROM ${waiters} WHERE id = :id AND owner = :owner AND alive_until > now)`;
  const earlier = `alive_until > now AND ticket < coalesce(${ownTicket}, 9223372036854775807)`;
  const ahead = `(SELECT count(*) FROM (SELECT 1 FROM ${waiters} WHERE id = :id AND ${earlier} LIMIT ${FAR}) AS a)`;
  const waiting = (id: string) =>
    `ARRAY(SELECT w.owner FROM ${waiters} AS w WHERE w.id = ${id} AND alive_until > now ORDER BY ticket)`;
  const mine = 'l.owner = :owner';
  const free = '(l.expires <= excluded.acquired AND excluded.owner IS NOT NULL)';
  // "blocked": somebody alive is before us in the queue, or we have been buried. A row that is not there yet is made
  // free then, and the conflict clause decides in all other cases, on the newest version of the row.
  const look = (blockers: string) => `
      WITH ${clock},
      turn AS MATERIALIZED (
        SELECT now, EXISTS (SELECT 1 FROM ${waiters} WHERE id = :id
          AND (${blockers} OR owner = :owner AND gone_until > 0)) AS blocked
        FROM clock
      )`;
  const take = `
        INSERT INTO ${locks} AS l (id, prefix, name, owner, fence, acquired, expires, metadata, queued, forced)
        SELECT :id::bytea, :prefix::text, :name::bytea, CASE WHEN blocked THEN NULL ELSE :owner::text END, now, now,
          CASE WHEN blocked THEN now ELSE now + :ttl::bigint END,
          CASE WHEN blocked THEN NULL ELSE :metadata::bytea END, :mark::bigint, 0
        FROM turn
        ON CONFLICT (id) DO UPDATE SET
          owner = CASE WHEN ${mine} OR ${free} THEN :owner ELSE l.owner END,
          fence = CASE WHEN ${mine} THEN l.fence WHEN ${free} THEN greatest(l.fence + 1, excluded.fence) ELSE l.fence END,
          acquired = CASE WHEN ${mine} THEN l.acquired WHEN ${free} THEN excluded.acquired ELSE l.acquired END,
          metadata = CASE WHEN ${mine} THEN l.metadata WHEN ${free} THEN excluded.metadata ELSE l.metadata END,
          expires = CASE WHEN ${mine} THEN greatest(l.expires, excluded.acquired + :ttl::bigint)
            WHEN ${free} THEN excluded.expires ELSE l.expires END,
          queued = greatest(l.queued, excluded.queued)
        WHERE ${mine} OR ${free} OR l.queued < excluded.queued`;
  const release = `
      UPDATE ${locks} SET owner = NULL, metadata = NULL, expires = ${NOW} + :keepFor::bigint
      WHERE id = :id AND owner = :owner RETURNING queued::text`;
  return {
    version: numbered(`SELECT version() AS version, current_setting('server_version_num') AS number`),

    // Who has no place yet is behind all who wait, and asks how things stand only if it must: most locks are free.
    takeNew: numbered<TakeParameters>(`${look('alive_until > now')} ${take} RETURNING owner, fence::text`),
    take: numbered<TakeParameters>(`${look(earlier)},
      taken AS (${take} RETURNING owner, fence, acquired, expires),
      placeless AS (
        DELETE FROM ${waiters} AS w USING taken AS t
        WHERE w.id = :id AND w.owner = :owner AND t.owner = :owner AND w.gone_until = 0
      ),
      standing AS (
        SELECT * FROM taken
        UNION ALL
        SELECT owner, fence, acquired, expires FROM ${locks} WHERE id = :id AND NOT EXISTS (SELECT 1 FROM taken)
      )
      SELECT owner, fence::text, acquired::text, (expires - now)::text AS rest,
        CASE WHEN owner = :owner THEN NULL ELSE ${ownTicket}::text END AS ticket,
        CASE WHEN owner = :owner THEN 0 ELSE ${ahead} END AS ahead
      FROM standing, clock`),
    refusal: numbered<{ id: Buffer; owner: string }>(`
      WITH ${clock}
      SELECT l.owner, acquired::text, (expires - now)::text AS rest, ${ownTicket}::text AS ticket, ${ahead} AS ahead
      FROM clock LEFT JOIN ${locks} AS l ON l.id = :id`),

    // The ticket comes from the statement itself. A place that is alive keeps its ticket, a dead one gets a new one.
    enqueue: numbered<{ id: Buffer; owner: string; inbox: string | null }>(`
      INSERT INTO ${waiters} AS w (id, owner, inbox, alive_until, gone_until)
      VALUES (:id, :owner, :inbox, ${NOW} + ${LIVENESS * 1000}, 0)
      ON CONFLICT (id, owner) DO UPDATE SET
        inbox = excluded.inbox,
        ticket = CASE WHEN w.alive_until > ${NOW} THEN w.ticket ELSE excluded.ticket END,
        alive_until = CASE WHEN w.gone_until > 0 THEN 0 ELSE excluded.alive_until END
      RETURNING ticket::text`),
    bury: numbered<{ id: Buffer; owner: string }>(`
      INSERT INTO ${waiters} (id, owner, alive_until, gone_until)
      VALUES (:id, :owner, 0, ${NOW} + ${LATEST * 1000})
      ON CONFLICT (id, owner) DO UPDATE SET alive_until = 0, gone_until = excluded.gone_until`),
    free: numbered<FreeParameters>(release),
    leaveAndFree: numbered<FreeParameters>(`
      WITH placeless AS (DELETE FROM ${waiters} WHERE id = :id AND owner = :owner AND gone_until = 0) ${release}`),
    freeMany: numbered<{ ids: Buffer[]; owners: string[] }>(`
      UPDATE ${locks} AS l SET owner = NULL, metadata = NULL, expires = ${NOW}
      FROM unnest(:ids::bytea[], :owners::text[]) WITH ORDINALITY AS g(id, owner, n)
      WHERE l.id = g.id AND l.owner = g.owner RETURNING n, queued::text`),
    force: numbered<{ id: Buffer; expected: string | null }>(`
      UPDATE ${locks} SET owner = NULL, metadata = NULL, forced = fence, expires = ${NOW}
      WHERE id = :id AND expires > ${NOW} AND (:expected::bigint IS NULL OR fence = :expected::bigint)
      RETURNING queued::text`),
    wake: numbered<{ id: Buffer; mark: number }>(`
      WITH ${clock},
      head AS (
        SELECT owner, inbox FROM ${waiters}, clock WHERE id = :id AND alive_until > now
          AND EXISTS (SELECT 1 FROM ${locks} AS l WHERE l.id = :id AND l.expires <= now)
        ORDER BY ticket LIMIT 1
      ),
      unmarked AS (
        UPDATE ${locks} SET queued = 0 WHERE id = :id AND queued = :mark::bigint AND queued > 0
          AND NOT EXISTS (SELECT 1 FROM ${waiters} AS w WHERE w.id = :id AND w.gone_until = 0)
      )
      SELECT owner, CASE WHEN inbox IS NULL THEN NULL ELSE pg_notify(inbox, owner) END FROM head`),

    renew: numbered<{ ids: Buffer[]; owners: string[]; fences: string[]; ttls: number[] }>(`
      WITH ${clock}
      UPDATE ${locks} AS l SET expires = greatest(l.expires, now + g.ttl)
      FROM clock, unnest(:ids::bytea[], :owners::text[], :fences::bigint[], :ttls::bigint[])
        WITH ORDINALITY AS g(id, owner, fence, ttl, n)
      WHERE l.id = g.id AND l.owner = g.owner AND l.fence = g.fence RETURNING n`),
    wasForced: numbered<{ ids: Buffer[]; owners: string[]; fences: string[] }>(`
      SELECT n FROM unnest(:ids::bytea[], :owners::text[], :fences::bigint[]) WITH ORDINALITY AS g(id, owner, fence, n)
      JOIN ${locks} AS l ON l.id = g.id AND l.forced = g.fence AND l.forced <> 0`),
    adopt: numbered<{ id: Buffer; owner: string; newOwner: string; fence: string; ttl: number }>(`
      WITH ${clock}
      UPDATE ${locks} SET owner = :newOwner, expires = greatest(expires, now + :ttl::bigint) FROM clock
      WHERE id = :id AND owner IN (:owner, :newOwner) AND fence = :fence::bigint AND expires > now RETURNING 1`),
    inspect: numbered<{ id: Buffer }>(`
      WITH ${clock}
      SELECT owner, fence::text, acquired::text, metadata, (expires - now)::text AS rest, ${waiting(':id')} AS waiting
      FROM clock LEFT JOIN ${locks} AS l ON l.id = :id`),
    list: numbered<{ prefix: string; start: Buffer; after: Buffer; page: number }>(`
      WITH ${clock}
      SELECT l.id, name, owner, fence::text, acquired::text, metadata, (expires - now)::text AS rest,
        ${waiting('l.id')} AS waiting
      FROM ${locks} AS l, clock
      WHERE prefix = :prefix AND l.id > :after AND substring(name FROM 1 FOR length(:start::bytea)) = :start::bytea
        AND (expires > now OR EXISTS (SELECT 1 FROM ${waiters} AS w WHERE w.id = l.id AND w.alive_until > now))
      ORDER BY l.id LIMIT :page`),

    // The inbox too: it changes when messages begin or cease to arrive.
    refresh: numbered<{ ids: Buffer[]; owners: string[]; inbox: string | null }>(`
      WITH ${clock}
      UPDATE ${waiters} AS w SET alive_until = now + ${LIVENESS * 1000}, inbox = :inbox::text
      FROM clock, unnest(:ids::bytea[], :owners::text[]) AS p(id, owner)
      WHERE w.id = p.id AND w.owner = p.owner AND w.alive_until > now RETURNING w.owner`),
    peek: numbered<{ ids: Buffer[]; tickets: number[] }>(`
      WITH ${clock}
      SELECT greatest(0, coalesce(l.expires - now, 0))::text AS rest, (
        SELECT count(*) FROM (
          SELECT 1 FROM ${waiters} AS w WHERE w.id = p.id AND w.alive_until > now AND w.ticket < p.ticket LIMIT ${FAR}
        ) AS a
      ) AS ahead
      FROM clock, unnest(:ids::bytea[], :tickets::bigint[]) WITH ORDINALITY AS p(id, ticket, n)
      LEFT JOIN ${locks} AS l ON l.id = p.id ORDER BY n`),

    sweepWaiters: numbered<{ limit: number }>(`
      DELETE FROM ${waiters} WHERE ticket IN (
        SELECT ticket FROM ${waiters} WHERE greatest(alive_until, gone_until) < ${NOW}
        LIMIT :limit FOR UPDATE SKIP LOCKED
      ) RETURNING 1`),
    // The condition is there twice: a row may be taken between the choice and the deletion.
    sweepLocks: numbered<{ prefix: string; retention: number; limit: number }>(`
      WITH ${clock}
      DELETE FROM ${locks} WHERE id IN (
        SELECT l.id FROM ${locks} AS l, clock
        WHERE prefix = :prefix AND expires < now - :retention::bigint AND fence < now - :retention::bigint
          AND NOT EXISTS (SELECT 1 FROM ${waiters} AS w WHERE w.id = l.id)
        LIMIT :limit FOR UPDATE OF l SKIP LOCKED
      ) AND expires < ${NOW} - :retention::bigint AND fence < ${NOW} - :retention::bigint RETURNING 1`),
  };
}

/** The schema of PostgreSQL, version by version. */
export const POSTGRES_MIGRATIONS: Migrations = [
  ({ locks, waiters, schema }) => [
    // Half-empty pages let a row be updated in place: locks are updated all the time, and no index changes.
    `CREATE TABLE IF NOT EXISTS ${locks} (
      id bytea PRIMARY KEY, prefix text NOT NULL, name bytea NOT NULL, owner text, fence bigint NOT NULL,
      acquired bigint NOT NULL, expires bigint NOT NULL, metadata bytea, queued bigint NOT NULL, forced bigint NOT NULL
    ) WITH (fillfactor = 50)`,
    // CACHE 1 is what makes tickets follow the order of arrival: a cached range would belong to one connection.
    `CREATE TABLE IF NOT EXISTS ${waiters} (
      ticket bigint GENERATED BY DEFAULT AS IDENTITY (CACHE 1) PRIMARY KEY, id bytea NOT NULL,
      owner text NOT NULL, inbox text, alive_until bigint NOT NULL, gone_until bigint NOT NULL, UNIQUE (id, owner)
    )`,
    `CREATE INDEX IF NOT EXISTS ${waiters}_queue ON ${waiters} (id, ticket)`,
    `CREATE TABLE IF NOT EXISTS ${schema} (version integer PRIMARY KEY)`,
    `INSERT INTO ${schema} (version) VALUES (1) ON CONFLICT DO NOTHING`,
  ],
];
