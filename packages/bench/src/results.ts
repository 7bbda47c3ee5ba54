import type { Backend } from './subject.js';

/** One figure for one subject: the median of the rounds, and their spread. */
export interface Figure {
  readonly backend: Backend;
  readonly subject: string;
  readonly kind: 'holdfast' | 'floor' | 'peer';
  readonly scenario: Scenario;
  readonly unit: string;
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export type Scenario =
  | 'sequential'
  | 'parallel'
  | 'contended grants'
  | 'contended hand-over'
  | 'contended spread'
  | 'raw round trip under load'
  | 'commands per hand-over, 10 waiters'
  | 'commands per hand-over, 100 waiters'
  | 'commands per hand-over, 1000 waiters'
  | 'holding 10,000: cores'
  | 'holding 10,000: MiB'
  | 'recovery from a killed holder, ttl 2 s';

/** The file that the documentation reads. */
export interface Results {
  readonly at: string;
  readonly machine: {
    readonly node: string;
    readonly cpus: number;
    readonly model: string;
    readonly platform: string;
  };
  readonly figures: readonly Figure[];
}

/** A table for people: scenarios down, subjects across, with the ratio to the floor where there is one. */
export function table(results: Results, backend: Backend): string {
  const figures = results.figures.filter((figure) => figure.backend === backend);
  const scenarios = [...new Set(figures.map((figure) => figure.scenario))];
  const names = [...new Set(figures.map((figure) => figure.subject))];
  const head = `| ${backend} | ${names.join(' | ')} |\n|---|${names.map(() => '--:').join('|')}|`;
  const rows = scenarios.map((scenario) => {
    const of = (name: string) =>
      figures.find((figure) => figure.scenario === scenario && figure.subject === name);
    const floor = figures.find((figure) => figure.scenario === scenario && figure.kind === 'floor');
    const cells = names.map((name) => cell(of(name), floor));
    const unit = figures.find((figure) => figure.scenario === scenario)?.unit;
    return `| ${scenario}, ${unit} | ${cells.join(' | ')} |`;
  });
  return [head, ...rows].join('\n');
}

function cell(figure: Figure | undefined, floor: Figure | undefined): string {
  if (figure === undefined) return '–';
  const value = format(figure.median);
  if (floor === undefined || figure.kind === 'floor') return value;
  return `${value} (${(figure.median / floor.median).toFixed(2)})`;
}

function format(value: number): string {
  if (value >= 1000) return Math.round(value).toLocaleString('en');
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
