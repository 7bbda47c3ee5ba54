import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Backend, plot, type Results } from '@holdfast/bench';
import { connect } from '@holdfast/core';
import {
  startEtcd,
  startEtcdCluster,
  startMariaDb,
  startPostgres,
  startRedis,
  startRedisCluster,
  startRedisQuorum,
  startRedisSentinel,
  startZooKeeper,
  startZooKeeperCluster,
} from '@holdfast/testbed';
import {
  type CapabilitiesFile,
  type ChaosRow,
  type ConformanceRun,
  data,
  type LoadRow,
  save,
  TOPOLOGIES,
  type Topology,
} from './data.js';
import { root } from './workspace.js';

interface Server {
  readonly url: string;
  stop(): Promise<void>;
}

const nothingToStop = async (): Promise<void> => {};

const START: Readonly<Record<Topology, () => Promise<Server>>> = {
  memory: async () => ({ url: 'memory:', stop: nothingToStop }),
  sqlite: async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-docs-'));
    return {
      url: `sqlite:${join(folder, 'locks.db')}`,
      stop: () => rm(folder, { recursive: true, force: true }),
    };
  },
  postgres: startPostgres,
  mariadb: startMariaDb,
  redis: startRedis,
  'redis-sentinel': startRedisSentinel,
  'redis-cluster': startRedisCluster,
  'redis-quorum': startRedisQuorum,
  etcd: startEtcd,
  'etcd-cluster': startEtcdCluster,
  zookeeper: startZooKeeper,
  'zookeeper-cluster': startZooKeeperCluster,
};

/** Asks each topology what it declares, on a server of its own. */
export async function recordCapabilities(
  topologies: readonly Topology[],
  log: (line: string) => void,
): Promise<void> {
  for (const topology of topologies) {
    log(topology);
    const declared = await capabilitiesOf(topology);
    const known: CapabilitiesFile = { ...data('capabilities'), [topology]: declared };
    save(
      'capabilities',
      Object.fromEntries(TOPOLOGIES.flatMap((key) => (known[key] ? [[key, known[key]]] : []))),
    );
  }
}

/** What a topology declares, once connected. */
export async function capabilitiesOf(topology: Topology): Promise<CapabilitiesFile[Topology]> {
  const server = await START[topology]();
  try {
    const locks = await connect(server.url);
    const { capabilities } = locks.backend;
    await locks.close();
    return capabilities;
  } finally {
    await server.stop();
  }
}

interface TestReport {
  readonly startTime: number;
  readonly testResults: readonly {
    readonly startTime?: number;
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[];
      readonly status: string;
    }[];
  }[];
}

/** Takes the runs of the conformance suite out of reports that `vitest --reporter=json` wrote. */
export function recordConformance(files: readonly string[]): void {
  const runs = new Map(data('conformance').map((run) => [run.suite, run]));
  for (const file of files) {
    const report = JSON.parse(readFileSync(file, 'utf8')) as TestReport;
    for (const run of runsOf(report)) {
      const known = runs.get(run.suite);
      if (known === undefined || known.at <= run.at) runs.set(run.suite, run);
    }
  }
  save(
    'conformance',
    [...runs.values()].sort((a, b) => a.suite.localeCompare(b.suite)),
  );
}

/** What the suite calls its outermost group, after the backend's name. */
const PROMISES = ' keeps its promises';

/** Its own name and those of the groups around it, each once. */
function suiteOf(titles: readonly string[]): string {
  const names = titles
    .map((title) => title.replace(PROMISES, '').replace(/,\s*$/, ''))
    .filter((name) => name !== '');
  return [...new Set(names)].join(', ');
}

/** A suite that was asked for one case alone says nothing about the others. */
const WHOLE = 100;

export function runsOf({ testResults, startTime }: TestReport): ConformanceRun[] {
  const runs = new Map<string, { at: number; guarantees: Map<string, { passed: number; failed: number }> }>();
  for (const { assertionResults, startTime: at = startTime } of testResults) {
    for (const { ancestorTitles, status } of assertionResults) {
      const promises = ancestorTitles.findIndex((title) => title.endsWith(PROMISES));
      if (promises === -1) continue;
      const guarantee = ancestorTitles[promises + 1] ?? '';
      const suite = suiteOf(ancestorTitles.slice(0, promises + 1));
      const run = runs.get(suite) ?? { at, guarantees: new Map() };
      const counts = run.guarantees.get(guarantee) ?? { passed: 0, failed: 0 };
      if (status === 'passed') counts.passed++;
      else if (status === 'failed') counts.failed++;
      run.guarantees.set(guarantee, counts);
      runs.set(suite, run);
    }
  }
  return [...runs].flatMap(([suite, { at, guarantees }]) => {
    const counts = [...guarantees.values()];
    const passed = counts.reduce((sum, one) => sum + one.passed, 0);
    const failed = counts.reduce((sum, one) => sum + one.failed, 0);
    if (passed + failed < WHOLE) return [];
    return [
      { suite, at: new Date(at).toISOString(), passed, failed, guarantees: Object.fromEntries(guarantees) },
    ];
  });
}

/**
 * Takes the cells out of the chaos runner's reports: the last one wins, whatever it says. Runs of a backend that was
 * spoiled on purpose are kept apart.
 */
export function recordChaos(files: readonly string[]): void {
  const rows = new Map(data('chaos').map((row) => [`${row.backend} ${row.fault}`, row]));
  const mutants = new Map(data('mutants').map((row) => [`${row.mutant} ${row.backend} ${row.fault}`, row]));
  for (const file of files) {
    const { seed, mutant, cases } = JSON.parse(readFileSync(file, 'utf8')) as {
      seed: number;
      mutant?: string;
      cases: (Omit<ChaosRow, 'seed'> & { found: readonly string[] })[];
    };
    if (mutant !== undefined) {
      for (const { backend, fault, verdict, violations, found } of cases) {
        const broken = [...new Set(found.flatMap((line) => /^[a-z]+\/[a-z-]+(?=: )/.exec(line)?.[0] ?? []))];
        const row = { mutant, backend, fault, seed, verdict, violations, broken };
        mutants.set(`${mutant} ${backend} ${fault}`, row);
      }
      continue;
    }
    for (const { found: _found, ...row } of cases) {
      // Workers that could not even start show nothing of the backend: the cell stays as it was.
      if (row.grants > 0) rows.set(`${row.backend} ${row.fault}`, { ...row, seed });
    }
  }
  save(
    'mutants',
    [...mutants.values()].sort((a, b) => a.mutant.localeCompare(b.mutant)),
  );
  const place = ({ backend }: ChaosRow): number => TOPOLOGIES.indexOf(backend as Topology);
  save(
    'chaos',
    [...rows.values()].sort((a, b) => place(a) - place(b) || a.fault.localeCompare(b.fault)),
  );
}

/** Takes what came of loads out of files that `pnpm load --json` wrote: the last run wins, whatever it says. */
export function recordLoad(files: readonly string[]): void {
  const rows = new Map(data('load').map((row) => [`${row.backend} ${row.scenario}`, row]));
  for (const file of files) {
    const runs = JSON.parse(readFileSync(file, 'utf8')) as LoadRow[];
    for (const row of runs) rows.set(`${row.backend} ${row.scenario}`, row);
  }
  const place = ({ backend }: LoadRow): number => TOPOLOGIES.indexOf(backend as Topology);
  save(
    'load',
    [...rows.values()].sort((a, b) => place(a) - place(b) || a.scenario.localeCompare(b.scenario)),
  );
}

/** Takes the backends' results out of files that `pnpm bench --json` wrote, and plots them. The last run wins. */
export function recordBench(files: readonly string[]): void {
  for (const file of files) {
    const known = data('bench');
    const given = JSON.parse(readFileSync(file, 'utf8')) as Results;
    const newer = Object.entries(given).filter(([backend, { at }]) => {
      return (known[backend as Backend]?.at ?? '') <= at;
    });
    save('bench', { ...known, ...Object.fromEntries(newer) });
  }
  const plots = join(root, 'docs/data/plots');
  mkdirSync(plots, { recursive: true });
  for (const [backend, results] of Object.entries(data('bench'))) {
    for (const theme of ['light', 'dark'] as const)
      writeFileSync(join(plots, `${backend}-${theme}.svg`), plot(backend as Backend, results, theme));
  }
}
