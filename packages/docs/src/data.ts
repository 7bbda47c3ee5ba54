import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Results } from '@holdfast/bench';
import type { Capabilities } from '@holdfast/core';
import type { ReportRow } from '@holdfast/testbed';
import { read, root } from './workspace.js';

/** A server, or a group of servers, that locks can be kept on. */
export const TOPOLOGIES = [
  'memory',
  'sqlite',
  'postgres',
  'mariadb',
  'redis',
  'redis-sentinel',
  'redis-cluster',
  'redis-quorum',
  'etcd',
  'etcd-cluster',
  'zookeeper',
  'zookeeper-cluster',
] as const;
export type Topology = (typeof TOPOLOGIES)[number];

/** What a topology is called on a page. */
export const TITLES: Readonly<Record<Topology, string>> = {
  memory: 'memory',
  sqlite: 'SQLite',
  postgres: 'PostgreSQL',
  mariadb: 'MariaDB, MySQL',
  redis: 'Redis, one server',
  'redis-sentinel': 'Redis with Sentinel',
  'redis-cluster': 'Redis Cluster',
  'redis-quorum': 'Redis, a quorum of servers',
  etcd: 'etcd, one member',
  'etcd-cluster': 'etcd, three members',
  zookeeper: 'ZooKeeper, one server',
  'zookeeper-cluster': 'ZooKeeper, three servers',
};

/** What each topology declares once connected, as recorded. */
export type CapabilitiesFile = Partial<Record<Topology, Capabilities>>;

/** One run of the conformance suite. */
export interface ConformanceRun {
  /** As given to `describeConformance`. */
  readonly suite: string;
  readonly at: string;
  readonly passed: number;
  readonly failed: number;
  /** Cases passed for each guarantee. */
  readonly guarantees: Readonly<Record<string, { readonly passed: number; readonly failed: number }>>;
}

/** One fault on one backend, as the chaos runner reports it. */
export interface ChaosRow extends ReportRow {
  readonly seed: number;
}

/** A backend that was spoiled on purpose under one fault, and what the chaos runner said of it. */
export interface MutantRow {
  /** As in `--mutant`. */
  readonly mutant: string;
  readonly backend: string;
  readonly fault: string;
  readonly seed: number;
  readonly verdict: ChaosRow['verdict'];
  readonly violations: number;
  /** The rules that were broken, such as `exclusion/two-holders`. */
  readonly broken: readonly string[];
}

/** A load on one backend, and what came of it. */
export interface LoadRow {
  readonly backend: string;
  /** As in `--scenario`. */
  readonly scenario: string;
  readonly count: number;
  readonly seed: number;
  readonly seconds: number;
  readonly figures: Readonly<Record<string, number | string>>;
  /** What should not be so. */
  readonly faults: readonly string[];
}

export interface CaseGroup {
  readonly group: string;
  readonly cases: readonly { readonly id: string; readonly what: string; readonly first?: string }[];
}

/** A bug that the tests of this project found. */
export interface Bug {
  readonly where: string;
  readonly what: string;
  /** How to see it, at the commit before it was mended. */
  readonly repeat: string;
  readonly mended: string;
}

interface Files {
  bench: Results;
  capabilities: CapabilitiesFile;
  conformance: readonly ConformanceRun[];
  chaos: readonly ChaosRow[];
  mutants: readonly MutantRow[];
  load: readonly LoadRow[];
  cases: readonly CaseGroup[];
  bugs: readonly Bug[];
}

const EMPTY: Files = {
  bench: {},
  capabilities: {},
  conformance: [],
  chaos: [],
  mutants: [],
  load: [],
  cases: [],
  bugs: [],
};

/** What was measured or recorded, from `docs/data`. */
export function data<K extends keyof Files>(name: K): Files[K] {
  const path = `docs/data/${name}.json`;
  return existsSync(join(root, path)) ? (JSON.parse(read(path)) as Files[K]) : EMPTY[name];
}

export function save<K extends keyof Files>(name: K, content: Files[K]): void {
  writeFileSync(join(root, `docs/data/${name}.json`), `${JSON.stringify(content, null, 2)}\n`);
}
