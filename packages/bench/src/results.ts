import { existsSync, readFileSync } from 'node:fs';
import type { Profile } from './profile.js';
import type { Backend, Subject } from './subject.js';

/** One figure for one subject: the median of the rounds, and their spread. */
export interface Figure {
  readonly subject: string;
  readonly kind: Subject['kind'];
  readonly scenario: Scenario;
  readonly unit: string;
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export const SCENARIOS = [
  'sequential',
  'parallel',
  'client processor time',
  'contended grants',
  'contended hand-over',
  'contended grants to another',
  'contended hand-over to another',
  'contended spread',
  'contended errors',
  'raw round trip under load',
  'commands per hand-over, 10 waiters',
  'commands per hand-over, 100 waiters',
  'commands per hand-over, 1000 waiters',
  'holding 10,000: cores',
  'holding 10,000: MiB',
  'recovery from a killed holder, ttl 2 s',
] as const;
export type Scenario = (typeof SCENARIOS)[number];

/** How much was measured. */
export interface Effort {
  /** Rounds that count, of each subject, in turn. One more before them warms up. */
  readonly rounds: number;
  /** Length of one measurement, ms. */
  readonly ms: number;
  readonly waiters: number;
  readonly processes: number;
}

/** What was measured of one backend, in one run on one machine. */
export interface BackendResults {
  readonly at: string;
  readonly machine: {
    readonly node: string;
    readonly cpus: number;
    readonly model: string;
    readonly platform: string;
  };
  readonly effort: Effort;
  readonly figures: readonly Figure[];
  /** Where this project's time goes, one pair after another. */
  readonly profile?: Profile;
}

/** The file that the documentation reads: the last run of each backend. */
export type Results = Partial<Record<Backend, BackendResults>>;

/** What a results file holds; nothing where there is no file yet. */
export function readResults(file: string): Results {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Results) : {};
}

/** A table for people: scenarios down, subjects across, with the ratio to the floor where there is one. */
export function table(backend: Backend, { figures }: BackendResults): string {
  const scenarios = SCENARIOS.filter((scenario) => figures.some((figure) => figure.scenario === scenario));
  const names = [...new Set(figures.map((figure) => figure.subject))];
  const head = `| ${backend} | ${names.join(' | ')} |\n| --- | ${names.map(() => '--:').join(' | ')} |`;
  const rows = scenarios.map((scenario) => {
    const of = figures.filter((figure) => figure.scenario === scenario);
    const floor = of.find(({ kind }) => kind === 'floor');
    const cells = names.map((name) =>
      cell(
        of.find(({ subject }) => subject === name),
        floor,
      ),
    );
    return `| ${scenario}, ${of[0]?.unit} | ${cells.join(' | ')} |`;
  });
  return [head, ...rows].join('\n');
}

function cell(figure: Figure | undefined, floor: Figure | undefined): string {
  if (figure === undefined) return '–';
  const value = formatNumber(figure.median);
  if (floor === undefined || figure.kind === 'floor') return value;
  return `${value} (${formatNumber(figure.median / floor.median)} × floor)`;
}

/** A number as people read it: three digits that matter. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return '–';
  if (value >= 1000) return Math.round(value).toLocaleString('en');
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
