import type { Clock, Diagnosis } from '@holdfast/core';
import { aheadBy, clockDiagnosis } from './diagnosis.js';

/** The server's variables by name, as text; those that this server does not have are absent. */
type Variables = ReadonlyMap<string, string>;

/** Asks rows of a statement, values as text. */
export type AskText = (sql: string) => Promise<readonly Readonly<Record<string, string>>[]>;

const VARIABLES = [
  'version',
  'read_only',
  'super_read_only',
  'innodb_flush_log_at_trx_commit',
  'log_bin',
  'binlog_format',
  'tx_isolation',
  'transaction_isolation',
  'wsrep_on',
];

/** What a MySQL or MariaDB server's settings mean for locks. */
export async function diagnoseMysql(
  ask: AskText,
  { clock, product }: { readonly clock: Clock; readonly product: 'mysql' | 'mariadb' },
): Promise<readonly Diagnosis[]> {
  const before = clock.wall();
  const [time] = await ask(
    "SELECT CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS CHAR) AS now",
  );
  const after = clock.wall();
  const names = VARIABLES.map((name) => `'${name}'`).join(', ');
  const rows = await ask(`SHOW VARIABLES WHERE Variable_name IN (${names})`);
  const variables: Variables = new Map(rows.map((row) => [row.Variable_name ?? '', row.Value ?? '']));
  const name = product === 'mariadb' ? 'MariaDB' : 'MySQL';
  return [
    {
      level: 'ok',
      id: `${product}-version`,
      finding: `the server is ${name} ${variables.get('version')}; waiters ask for their turn, since it has no messages`,
    },
    primary(product, variables),
    durability(product, variables),
    ...binlog(product, variables),
    ...isolation(product, variables),
    ...cluster(product, variables),
    clockDiagnosis(`${product}-clock`, aheadBy(Number(time?.now) / 1000, before, after)),
  ];
}

function isOn(value: string | undefined): boolean {
  return value !== undefined && !/^(off|0|no)$/i.test(value);
}

function primary(product: string, variables: Variables): Diagnosis {
  const id = `${product}-primary`;
  if (!isOn(variables.get('read_only')) && !isOn(variables.get('super_read_only'))) {
    return { level: 'ok', id, finding: 'the server lets clients write' };
  }
  return {
    level: 'danger',
    id,
    finding: 'the server is read-only, as replicas are: no lock can be taken on it',
    advice: 'connect to the primary',
  };
}

function durability(product: string, variables: Variables): Diagnosis {
  const id = `${product}-durability`;
  const flush = variables.get('innodb_flush_log_at_trx_commit') ?? '1';
  if (flush === '1' || flush === '3') {
    return { level: 'ok', id, finding: 'a grant is on disk before it is answered' };
  }
  const when = flush === '2' ? 'when the machine goes down' : 'when the server or its machine goes down';
  return {
    level: flush === '2' ? 'warning' : 'danger',
    id,
    finding: `innodb_flush_log_at_trx_commit is ${flush}: ${when}, the grants of the last second are lost, and others are granted while their holders go on`,
    advice: 'set innodb_flush_log_at_trx_commit to 1, and check fencing tokens at the resource',
  };
}

function binlog(product: string, variables: Variables): Diagnosis[] {
  if (!isOn(variables.get('log_bin')) || variables.get('binlog_format') !== 'STATEMENT') return [];
  return [
    {
      level: 'danger',
      id: `${product}-binlog`,
      finding: 'binlog_format is STATEMENT, which refuses writes at READ COMMITTED: no lock can be taken',
      advice: 'set binlog_format to ROW or MIXED',
    },
  ];
}

function isolation(product: string, variables: Variables): Diagnosis[] {
  const level = variables.get('transaction_isolation') ?? variables.get('tx_isolation') ?? 'READ-COMMITTED';
  if (level === 'READ-COMMITTED') return [];
  return [
    {
      level: 'info',
      id: `${product}-isolation`,
      finding: `the connections that were handed in are ${level}: contending for one lock is mostly deadlocks, which are sent again`,
      advice: 'set READ COMMITTED in the pool of the locks, or let them open connections of their own by URL',
    },
  ];
}

function cluster(product: string, variables: Variables): Diagnosis[] {
  if (!isOn(variables.get('wsrep_on'))) return [];
  return [
    {
      level: 'warning',
      id: `${product}-galera`,
      finding:
        'the server is a node of a Galera cluster: each node counts expiry by its own clock, and tickets of different nodes have no order',
      advice: 'send all locks to one node at a time, and keep the clocks of the nodes together',
    },
  ];
}
