import type { Clock, Diagnosis } from '@holdfast/core';
import { aheadBy, clockDiagnosis } from './diagnosis.js';
import type { PostgresConnection } from './postgres.js';

/** What one statement tells of the server, for everybody may ask it. */
interface Facts {
  readonly version: string;
  readonly now: string;
  readonly pid: number;
  readonly recovering: boolean;
  readonly fsync: string;
  readonly commit: string;
  readonly readonly: string;
  readonly isolation: string;
  readonly autovacuum: string;
  readonly standbys: string;
  readonly followers: number;
}

const FACTS = `
  SELECT current_setting('server_version') AS version, pg_backend_pid() AS pid, pg_is_in_recovery() AS recovering,
    (extract(epoch from clock_timestamp()) * 1000)::text AS now,
    current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commit,
    current_setting('transaction_read_only') AS readonly, current_setting('transaction_isolation') AS isolation,
    current_setting('autovacuum') AS autovacuum, current_setting('synchronous_standby_names') AS standbys,
    (SELECT count(*)::int FROM pg_stat_replication) AS followers`;

/** What a PostgreSQL server's settings mean for locks. `pushes`: messages about turns arrive at present. */
export async function diagnosePostgres(
  connection: PostgresConnection,
  { clock, pushes }: { readonly clock: Clock; readonly pushes: boolean },
): Promise<readonly Diagnosis[]> {
  const before = clock.wall();
  const { rows } = await connection.query({ text: FACTS, values: [] });
  const after = clock.wall();
  const facts = rows[0] as unknown as Facts;
  return [
    { level: 'ok', id: 'postgres-version', finding: `the server is PostgreSQL ${facts.version}` },
    role(facts),
    messages(facts, connection.processID, pushes),
    durability(facts),
    ...replication(facts),
    ...isolation(facts),
    ...vacuum(facts),
    clockDiagnosis('postgres-clock', aheadBy(Number(facts.now), before, after)),
  ];
}

function role({ recovering, readonly }: Facts): Diagnosis {
  const id = 'postgres-primary';
  if (recovering) {
    return {
      level: 'danger',
      id,
      finding: 'the server is a replica: no lock can be taken on it',
      advice: 'connect to the primary',
    };
  }
  if (readonly === 'on') {
    return {
      level: 'danger',
      id,
      finding: 'sessions of this role are read-only: no lock can be taken',
      advice: 'reset default_transaction_read_only for the role or the database',
    };
  }
  return { level: 'ok', id, finding: 'the server is a primary and lets this role write' };
}

/** A pooler answers with a process number of its own, and changes the server's connection behind our back. */
function messages({ pid }: Facts, processID: number | null | undefined, pushes: boolean): Diagnosis {
  const id = 'postgres-pooler';
  const pooled = typeof processID === 'number' && processID !== pid;
  if (pushes) {
    const way = pooled ? 'a pooler that keeps sessions stands before the server' : 'no pooler is in the way';
    return { level: 'ok', id, finding: `waiters are told of their turn by NOTIFY; ${way}` };
  }
  if (pooled) {
    return {
      level: 'info',
      id,
      finding:
        'a pooler in transaction mode stands before the server: NOTIFY does not pass, and waiters ask for their turn instead',
      advice: 'locks are as safe so; for quicker hand-overs give them a URL past the pooler',
    };
  }
  return {
    level: 'warning',
    id,
    finding: 'messages about turns do not arrive: waiters ask instead until they do',
    advice: 'see that one more connection for each process is allowed; event error says what it met',
  };
}

function durability({ fsync, commit }: Facts): Diagnosis {
  const id = 'postgres-durability';
  if (fsync === 'off') {
    return {
      level: 'warning',
      id,
      finding: 'fsync is off: when the machine goes down, grants, tokens or the whole database may be lost',
      advice: 'set fsync = on',
    };
  }
  if (commit === 'off') {
    return {
      level: 'danger',
      id,
      finding:
        'synchronous_commit is off: a crash of the server takes back the last grants, and others are granted while their holders go on',
      advice:
        'set synchronous_commit to on, for the role of the locks at least, and check fencing tokens at the resource',
    };
  }
  return {
    level: 'ok',
    id,
    finding: `a grant is on disk before it is answered (synchronous_commit ${commit})`,
  };
}

function replication({ followers, standbys }: Facts): Diagnosis[] {
  if (followers === 0 || standbys !== '') return [];
  return [
    {
      level: 'warning',
      id: 'postgres-replicas',
      finding: `${followers} replica(s) follow asynchronously: a failover may lose the last grants and tokens`,
      advice: 'set synchronous_standby_names, and check fencing tokens at the resource',
    },
  ];
}

function isolation({ isolation: level }: Facts): Diagnosis[] {
  if (level === 'read committed') return [];
  return [
    {
      level: 'info',
      id: 'postgres-isolation',
      finding: `sessions are ${level} by default: contention fails in conflict, and is sent again`,
      advice: 'read committed is enough for locks, and quicker',
    },
  ];
}

function vacuum({ autovacuum }: Facts): Diagnosis[] {
  if (autovacuum === 'on') return [];
  return [
    {
      level: 'warning',
      id: 'postgres-autovacuum',
      finding: 'autovacuum is off: rows of locks are updated all the time, and each update gets slower',
      advice: 'set autovacuum = on',
    },
  ];
}
