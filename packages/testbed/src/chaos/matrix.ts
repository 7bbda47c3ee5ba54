import { faultsOf } from './process-faults.js';
import type { ChaosFault, ChaosTarget } from './target.js';

/** What can happen to any backend, and the faults that make it happen, on whichever target has them. */
const KINDS = {
  'a worker is killed': ['kill9'],
  'a worker is stopped': ['sigstop'],
  'an event loop is blocked': ['blocked-loop'],
  'a wall clock jumps': ['clock'],
  'packets are slow': ['slow'],
  'connections are refused': ['refused'],
  'connections are reset': ['resets'],
  'nothing passes': ['partition', 'minority-cut-off', 'majority-cut-off', 'server-silent'],
  'answers do not pass': ['answers-held'],
  'answers are dropped': ['answers-dropped'],
  'answers are cut inside a frame': ['answers-cut'],
  'a server is killed or restarted': [
    'server-killed',
    'server-restarted',
    'node-killed',
    'member-killed',
    'leader-killed',
    'minority-killed',
    'majority-killed',
    'sentinel-killed',
    'all-killed',
    'all-restarted',
  ],
  'a server stands still': [
    'server-paused',
    'node-paused',
    'leader-paused',
    'minority-paused',
    'majority-paused',
  ],
  'the server closes its connections': ['clients-killed'],
  'the leader changes': ['failover', 'failover-behind', 'leader-killed', 'leader-isolated'],
  'a minority is cut off': [
    'leader-isolated',
    'member-isolated',
    'follower-isolated',
    'follower-blackholed',
    'leader-blackholed',
    'minority-cut-off',
  ],
  'somebody deletes what locks have stored': [
    'flushall',
    'minority-emptied',
    'leases-revoked',
    'session-ended',
    'rows-deleted',
  ],
  'the server forgets its scripts': ['script-flush'],
  'the history is compacted': ['compaction'],
  'a slot moves': ['slot-moved'],
} as const satisfies Record<string, readonly string[]>;

/** A kind of fault. */
export type FaultKind = keyof typeof KINDS;

/** Why a kind of fault makes no sense on a target. */
type Reasons = { readonly [K in FaultKind]?: string };

const ONE_SERVER: Reasons = {
  'the leader changes': 'there is one server',
  'a minority is cut off': 'there is one server',
};

const NO_SCRIPTS: Reasons = { 'the server forgets its scripts': 'no scripts are kept at the server' };
const NO_HISTORY: Reasons = { 'the history is compacted': 'the server keeps no history' };
const NO_SLOTS: Reasons = { 'a slot moves': 'there are no slots' };
const NOT_REDIS: Reasons = { ...NO_SCRIPTS, ...NO_SLOTS };

const NO_SERVER: Reasons = {
  ...ONE_SERVER,
  ...NOT_REDIS,
  ...NO_HISTORY,
  'packets are slow': 'there is no wire',
  'connections are refused': 'there is no wire',
  'connections are reset': 'there is no wire',
  'nothing passes': 'there is no wire',
  'answers do not pass': 'there is no wire',
  'answers are dropped': 'there is no wire',
  'answers are cut inside a frame': 'there is no wire',
  'a server is killed or restarted': 'there is no server',
  'a server stands still': 'there is no server',
  'the leader changes': 'there is no server',
  'a minority is cut off': 'there is no server',
  'the server closes its connections': 'there is no server',
};

const NO_ADMINISTRATOR =
  'the server has no command for it; to the client it is a reset, which it has as a fault of its own';

const REDIS: Reasons = { ...ONE_SERVER, ...NO_HISTORY, ...NO_SLOTS };

/** By the id of the target. */
const REASONS: Readonly<Record<string, Reasons>> = {
  memory: {
    ...NO_SERVER,
    'a worker is killed': 'its locks end with the process that they are in',
    'a wall clock jumps':
      'the clock is the whole process’s, and set from outside; core is tested with such a clock',
    'somebody deletes what locks have stored': 'nobody else can reach it',
  },
  sqlite: {
    ...NO_SERVER,
    'somebody deletes what locks have stored':
      'the statements that meet it are those of PostgreSQL and MariaDB, where it is done',
  },
  postgres: { ...ONE_SERVER, ...NOT_REDIS, ...NO_HISTORY },
  mariadb: { ...ONE_SERVER, ...NOT_REDIS, ...NO_HISTORY },
  redis: REDIS,
  'redis-hand-over': REDIS,
  'redis-sentinel': {
    ...NO_HISTORY,
    ...NO_SLOTS,
    'nothing passes':
      'the sentinels use the same proxies: it would be a failover, which is a fault of its own',
    'connections are refused':
      'the sentinels use the same proxies: it would be a failover, which is a fault of its own',
    'a server stands still': 'it would be a failover, which is a fault of its own',
    'a minority is cut off': 'see failover-behind: the primary is cut off from its replicas, and falls',
  },
  'redis-cluster': {
    ...NO_HISTORY,
    'the leader changes': 'the primaries have no replicas here: a failover is tested with Sentinel',
    'a minority is cut off': 'each slot has one server here, which is killed and stopped instead',
  },
  'redis-quorum': {
    ...NO_HISTORY,
    ...NO_SLOTS,
    'the leader changes': 'no server leads',
    'the server closes its connections':
      'on all servers at once it is a reset, which it has; on some it is a minority',
    'the server forgets its scripts': 'servers that are killed here forget them too',
  },
  etcd: { ...ONE_SERVER, ...NOT_REDIS, 'the server closes its connections': NO_ADMINISTRATOR },
  'etcd-cluster': { ...NOT_REDIS, 'the server closes its connections': NO_ADMINISTRATOR },
  zookeeper: {
    ...ONE_SERVER,
    ...NOT_REDIS,
    ...NO_HISTORY,
    'the server closes its connections': NO_ADMINISTRATOR,
  },
  'zookeeper-cluster': { ...NOT_REDIS, ...NO_HISTORY, 'the server closes its connections': NO_ADMINISTRATOR },
};

/** A kind of fault on a target: the faults that it has of that kind, or the reason why it has none. */
export interface Entry {
  readonly kind: FaultKind;
  readonly faults: readonly ChaosFault[];
  /** Undefined where there are faults. */
  readonly reason: string | undefined;
}

/** Every kind of fault, for one target. */
export function matrixOf(target: ChaosTarget): readonly Entry[] {
  const own = faultsOf(target);
  return (Object.keys(KINDS) as FaultKind[]).map((kind) => {
    const ids: readonly string[] = KINDS[kind];
    return {
      kind,
      faults: own.filter(({ id }) => ids.includes(id)),
      reason: REASONS[target.id]?.[kind],
    };
  });
}
