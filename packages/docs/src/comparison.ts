import { type BackendResults, type Figure, formatNumber, LAYERS, type Scenario } from '@holdfast/bench';
import type { Capabilities } from '@holdfast/core';
import { type CapabilitiesFile, data, TITLES, TOPOLOGIES, type Topology } from './data.js';
import { table } from './markdown.js';
import { PEERS, type Traits } from './peers.js';

/** What no capability says: what it takes to run, and whom it suits. */
const JUDGED: Readonly<
  Record<Topology, { readonly release?: string; readonly complexity: string; readonly fits: string }>
> = {
  memory: {
    complexity: 'none',
    fits: 'one process; tests',
  },
  sqlite: {
    release: 'ttl, by the machine’s boot-time clock',
    complexity: 'a file on a local disk',
    fits: 'several processes of one machine',
  },
  postgres: {
    release: 'ttl, by the database’s clock',
    complexity: 'two tables in a database that is there',
    fits: 'applications that have a database, up to some hundred grants a second',
  },
  mariadb: {
    release: 'ttl, by the database’s clock',
    complexity: 'two tables in a database that is there',
    fits: 'the same; the head of each queue polls',
  },
  redis: {
    complexity: 'one Redis server, which has to persist what it promised',
    fits: 'many short locks',
  },
  'redis-sentinel': {
    complexity: 'a primary, replicas, three sentinels',
    fits: 'many short locks, where a rare double grant is refused by its token',
  },
  'redis-cluster': {
    complexity: 'three primaries or more',
    fits: 'more locks than one server can carry',
  },
  'redis-quorum': {
    complexity: 'three or five independent Redis servers',
    fits: 'surviving a lost server without a failover, few waiters',
  },
  etcd: { complexity: 'one etcd member', fits: 'trying out; development' },
  'etcd-cluster': {
    complexity: 'three or five etcd members',
    fits: 'locks that must stay consistent through failovers',
  },
  zookeeper: { complexity: 'one ZooKeeper server', fits: 'trying out; development' },
  'zookeeper-cluster': {
    complexity: 'three or five ZooKeeper servers',
    fits: 'the same, where ZooKeeper is there already',
  },
};

/** The blocks of `docs/comparison.md`. */
export const comparisonBlocks: Readonly<Record<string, () => string>> = {
  matrix,
  needs,
  capabilities: () => capabilities(data('capabilities')),
  guarantees,
  speed,
  profiles,
};

function matrix(): string {
  const rows = [...ours(), ...PEERS].map((one) => [
    one.name,
    one.consistency,
    one.release,
    one.reentry,
    one.fairness,
    one.wake,
    one.fencing,
  ]);
  return table(
    ['', 'consistency', 'a dead holder is freed by', 're-entry', 'fairness', 'wake-up', 'fencing token'],
    rows,
  );
}

function needs(): string {
  const rows = [...ours(), ...PEERS].map(({ name, complexity, fits, sources }) => [
    name,
    complexity,
    fits,
    sources.map(({ title, url }) => `[${title}](${url})`).join(', '),
  ]);
  return table(['', 'what it takes', 'what it fits', 'sources'], rows);
}

function ours(): Traits[] {
  const recorded = data('capabilities');
  return TOPOLOGIES.flatMap((topology) => {
    const declared = recorded[topology];
    return declared === undefined ? [] : [traitsOf(topology, declared)];
  });
}

const CONSISTENCY: Readonly<Record<Capabilities['consistency'], string>> = {
  linearizable: 'linearizable',
  'single-node': 'one server',
  'async-replicated': 'asynchronously replicated: a failover can grant twice',
  quorum: 'a majority of independent servers',
  'in-process': 'one process',
};

function traitsOf(topology: Topology, declared: Capabilities): Traits {
  const { complexity, fits, release } = JUDGED[topology];
  return {
    name: `**Holdfast**: ${TITLES[topology]}`,
    consistency: CONSISTENCY[declared.consistency],
    release:
      declared.expiry === 'session'
        ? 'the end of its session'
        : (release ?? (declared.crossProcess ? 'ttl, by the server’s clock' : 'ttl')),
    // Core keeps both for every backend.
    reentry: 'by the asynchronous call chain',
    fairness: declared.fairness === 'fifo' ? 'first in, first out' : 'none',
    wake: declared.wake === 'push' ? 'by the server' : 'the head of the queue polls',
    fencing: 'rises strictly',
    complexity,
    fits,
    sources: [{ title: 'how', url: `./backends/${page(topology)}` }],
  };
}

/** The page of a topology's backend. */
export function page(topology: Topology): string {
  if (topology.startsWith('redis')) return 'redis.md';
  if (topology.startsWith('etcd')) return 'etcd.md';
  if (topology.startsWith('zookeeper')) return 'zookeeper.md';
  return topology === 'memory' ? 'memory.md' : 'sql.md';
}

function capabilities(recorded: CapabilitiesFile): string {
  const rows = TOPOLOGIES.flatMap((topology) => {
    const declared = recorded[topology];
    if (declared === undefined) return [];
    const { ttl } = declared;
    return [
      [
        TITLES[topology],
        ...[declared.fairness, declared.wake, declared.expiry, declared.consistency].map(code),
        declared.crossProcess ? 'yes' : 'no',
        declared.transferable ? 'yes' : 'no',
        code(declared.minHold),
        seconds(declared.grace),
        `${seconds(ttl.min)} to ${seconds(ttl.max)}${ttl.granularity > 1 ? `, in steps of ${seconds(ttl.granularity)}` : ''}`,
      ],
    ];
  });
  const head = ['', 'fairness', 'wake', 'expiry', 'consistency', 'across processes', 'adoption', 'minHold'];
  return table([...head, 'grace', 'ttl'], rows);
}

function code(text: string): string {
  return `\`${text}\``;
}

function seconds(ms: number): string {
  if (ms >= 86_400_000) {
    const days = Math.floor(ms / 86_400_000);
    return days > 365 ? 'a year and more' : `${days} days`;
  }
  return ms >= 1000 ? `${Number((ms / 1000).toFixed(2))} s` : `${ms} ms`;
}

/** What the suite and the chaos runner said last. */
function guarantees(): string {
  const runs = data('conformance');
  const chaos = data('chaos');
  const rows = TOPOLOGIES.flatMap((topology) => {
    const suites = runs.filter(({ suite }) => SUITES[topology].test(suite));
    const faults = chaos.filter(({ backend }) => backend === topology);
    if (suites.length === 0 && faults.length === 0) return [];
    const sum = (of: (row: (typeof faults)[number]) => number): string =>
      faults.length === 0 ? '–' : formatCount(faults.reduce((total, row) => total + of(row), 0));
    const cases = suites.map(({ passed, failed }) => `${passed} of ${passed + failed}`).join(', ');
    return [
      [
        TITLES[topology],
        cases === '' ? '–' : cases,
        faults.length,
        sum(({ grants }) => grants),
        sum(({ violations }) => violations),
        sum(({ lost }) => lost),
        sum(({ refused }) => refused),
      ],
    ];
  });
  const head = ['', 'conformance cases passed', 'faults', 'grants', 'violations', 'losses signalled'];
  return table([...head, 'stale writes refused'], rows);
}

function formatCount(count: number): string {
  return count.toLocaleString('en');
}

/** The names under which the suite runs on each topology. */
const SUITES: Readonly<Record<Topology, RegExp>> = {
  memory: /^memory/,
  sqlite: /^sqlite/,
  postgres: /^postgres/,
  mariadb: /^mariadb/,
  redis: /^redis(, with|$)/,
  'redis-sentinel': /^redis behind Sentinel/,
  'redis-cluster': /^redis as a cluster/,
  'redis-quorum': /^redis as a quorum/,
  etcd: /^etcd(?! on three)/,
  'etcd-cluster': /^etcd on three/,
  zookeeper: /one server, zookeeper/,
  'zookeeper-cluster': /ensemble of three, zookeeper/,
};

/** Rows of the speed tables, with what a reader calls them. */
const SPEED: readonly (readonly [Scenario, string])[] = [
  ['sequential', 'acquire + release, one after another, pairs/s'],
  ['parallel', 'acquire + release, 100 in parallel, pairs/s'],
  ['client processor time', 'processor time of the client, ms a pair'],
  ['contended grants', 'grants/s under contention'],
  ['contended hand-over', 'release to the next grant, ms'],
  ['contended grants to another', 'grants/s to another waiter than the last'],
  ['contended hand-over to another', 'release to the grant of another waiter, ms'],
  ['raw round trip under load', 'a raw round trip meanwhile, ms'],
  ['contended spread', 'grants of a waiter, most over least'],
  ['contended errors', 'errors that reach a caller, in 1,000 grants'],
  ['commands per hand-over, 10 waiters', 'requests for a hand-over, 10 waiters'],
  ['commands per hand-over, 100 waiters', 'requests for a hand-over, 100 waiters'],
  ['commands per hand-over, 1000 waiters', 'requests for a hand-over, 1,000 waiters'],
  ['recovery from a killed holder, ttl 2 s', 'recovery from a killed holder, ttl 2 s, ms'],
  ['holding 10,000: cores', 'processor cores to hold 10,000 locks'],
  ['holding 10,000: MiB', 'memory of a process that holds 10,000 locks, MiB'],
];

const MEASURED: Readonly<Record<string, string>> = {
  memory: 'Memory',
  sqlite: 'SQLite',
  postgres: 'PostgreSQL',
  mariadb: 'MariaDB',
  redis: 'Redis',
  'redis-quorum': 'Redis, a quorum of five',
  etcd: 'etcd',
  zookeeper: 'ZooKeeper',
};

function speed(): string {
  const bench = data('bench');
  if (Object.keys(bench).length === 0) return 'No results are recorded: `pnpm bench` writes them here.';
  return Object.entries(MEASURED)
    .flatMap(([backend, title]) => {
      const results = bench[backend as keyof typeof bench];
      return results === undefined ? [] : [speedOf(backend, title, results)];
    })
    .join('\n\n');
}

/** Layers down, backends across: µs of one pair. */
function profiles(): string {
  const bench = data('bench');
  const profiled = Object.entries(MEASURED).flatMap(([backend, title]) => {
    const profile = bench[backend as keyof typeof bench]?.profile;
    return profile === undefined ? [] : [{ title, profile }];
  });
  const rows = LAYERS.map((layer) => [layer, ...profiled.map(({ profile }) => formatNumber(profile[layer]))]);
  return table(['', ...profiled.map(({ title }) => title)], rows);
}

function speedOf(backend: string, title: string, { figures, effort, machine, at }: BackendResults): string {
  const names = [...new Set(figures.map(({ subject }) => subject))];
  const own = figures.find(({ kind }) => kind === 'holdfast')?.subject ?? 'holdfast';
  const rows = SPEED.flatMap(([scenario, label]) => {
    const of = (name: string): Figure | undefined =>
      figures.find((figure) => figure.scenario === scenario && figure.subject === name);
    if (names.every((name) => of(name) === undefined)) return [];
    return [[label, ...names.map((name) => cellOf(of(name), of(own), name === own))]];
  });
  const picture = (theme: 'light' | 'dark'): string =>
    `![${title}: what was measured](./data/plots/${backend}-${theme}.svg#gh-${theme}-mode-only)`;
  const run =
    `${effort.rounds} rounds of ${formatNumber(effort.ms / 1000)} s for each subject, in turn, after one that does ` +
    `not count; ${effort.waiters} waiters in ${backend === 'memory' ? 1 : effort.processes} processes where there is ` +
    `contention. ${machine.cpus} processors (${machine.model}), Node.js ${machine.node}, ${at.slice(0, 10)}.`;
  return `### ${title}\n\n${picture('light')}${picture('dark')}\n\n${table(['', ...names], rows)}\n\n${run}`;
}

/** The median, its spread, and how many times this project's figure it is. */
function cellOf(figure: Figure | undefined, own: Figure | undefined, isOwn: boolean): string {
  if (figure === undefined) return '–';
  const value = formatNumber(figure.median);
  const spread =
    figure.min === figure.max ? '' : ` (${formatNumber(figure.min)} to ${formatNumber(figure.max)})`;
  if (isOwn || own === undefined || own.median === 0) return `${value}${spread}`;
  return `${value}${spread}, × ${formatNumber(figure.median / own.median)}`;
}
