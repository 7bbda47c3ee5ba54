import type { CaseResult } from './case.js';

/** One line of the table. */
export interface ReportRow {
  readonly backend: string;
  readonly fault: string;
  readonly verdict: CaseResult['verdict'];
  /** Times that the fault was injected. */
  readonly injections: number;
  readonly grants: number;
  /** Acquisitions whose outcome stayed unknown. */
  readonly unknown: number;
  /** Losses that were signalled to their holders. */
  readonly lost: number;
  readonly violations: number;
  /** Writes that the fenced registers refused as stale. */
  readonly refused: number;
  /** Updates that the unfenced registers lost. */
  readonly updatesLost: number;
  /** Waiters certainly overtaken. */
  readonly inversions: number;
  /** ms from healing until every name that was wanted was held again, at worst. */
  readonly longestRecovery: number;
}

/** A case as a line of the table. */
export function rowOf({ backend, fault, verdict, rounds, check, troubles, story }: CaseResult): ReportRow {
  const { tokens, exclusion, register, fairness, recovery } = check.rules;
  return {
    backend,
    fault,
    verdict,
    injections: rounds,
    grants: tokens.counts.grants ?? 0,
    unknown: story.acquisitions.filter(({ outcome }) => outcome === 'unknown' || outcome === 'open').length,
    lost: exclusion.counts.lost ?? 0,
    violations: check.violations.length + troubles.length,
    refused: register.counts.refused ?? 0,
    updatesLost: register.counts.updatesLost ?? 0,
    inversions: fairness.counts.inversions ?? 0,
    longestRecovery: Math.round(recovery.counts.longestRecovery ?? 0),
  };
}

const COLUMNS: readonly [keyof ReportRow, string][] = [
  ['backend', 'backend'],
  ['fault', 'fault'],
  ['injections', 'injections'],
  ['grants', 'grants'],
  ['lost', 'losses signalled'],
  ['violations', 'violations'],
  ['longestRecovery', 'longest recovery, ms'],
  ['refused', 'stale writes refused'],
  ['updatesLost', 'updates lost unfenced'],
  ['inversions', 'overtaken'],
  ['unknown', 'unknown outcomes'],
  ['verdict', 'verdict'],
];

/** The table, fault by backend, as Markdown. */
export function markdownTable(rows: readonly ReportRow[]): string {
  const cells = [
    COLUMNS.map(([, heading]) => heading),
    ...rows.map((row) => COLUMNS.map(([key]) => String(row[key]))),
  ];
  const widths = COLUMNS.map((_, column) => Math.max(3, ...cells.map((line) => line[column]?.length ?? 0)));
  const isNumber = (column: number): boolean =>
    typeof rows[0]?.[COLUMNS[column]?.[0] ?? 'backend'] === 'number';
  const format = (line: readonly string[]): string =>
    `| ${line.map((cell, column) => (isNumber(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0))).join(' | ')} |`;
  const rule = `|${widths.map((width, column) => (isNumber(column) ? `${'-'.repeat(width + 1)}:` : '-'.repeat(width + 2))).join('|')}|`;
  const [head = [], ...body] = cells;
  return [format(head), rule, ...body.map(format)].map((line) => `${line}\n`).join('');
}
