import { basename } from 'node:path';
import { findCases } from './cases.js';
import { type ChaosRow, data, TITLES, type Topology } from './data.js';
import { sourceLink, table } from './markdown.js';
import { filesUnder } from './workspace.js';

/** The blocks of `docs/reliability.md`. */
export const reliabilityBlocks: Readonly<Record<string, () => string>> = {
  matrix,
  timelines,
  cases,
  bugs,
  suites,
};

/** Fault by topology: what was granted, signalled, violated, and how long it took to go on. */
function matrix(): string {
  const rows = data('chaos');
  const backends = [...new Set(rows.map(({ backend }) => backend))];
  return backends
    .map((backend) => {
      const own = rows.filter((row) => row.backend === backend);
      return `### ${TITLES[backend as Topology] ?? backend}\n\n${tableOf(own)}`;
    })
    .join('\n\n');
}

function tableOf(rows: readonly ChaosRow[]): string {
  const head = [
    'fault',
    'injections',
    'grants',
    'losses signalled',
    'violations',
    'longest recovery, ms',
    'stale writes refused',
    'overtaken',
    'verdict',
    'seed',
  ];
  const body = rows.map((row) => [
    `\`${row.fault}\``,
    row.injections,
    row.grants,
    row.lost,
    row.violations,
    row.longestRecovery,
    row.refused,
    row.inversions,
    row.verdict,
    row.seed,
  ]);
  return table(head, body);
}

/** The pictures that the chaos runner drew: `docs/data/timelines/BACKEND--FAULT.svg`. */
function timelines(): string {
  return filesUnder('docs/data/timelines', '.svg')
    .map((path) => {
      const [backend = '', fault = ''] = basename(path, '.svg').split('--');
      const title = `${TITLES[backend as Topology] ?? backend}: \`${fault}\``;
      return `### ${title}\n\n<div class="timeline">\n\n![Who held what when: ${backend}, ${fault}](./data/timelines/${basename(path)})\n\n</div>`;
    })
    .join('\n\n');
}

function suites(): string {
  const rows = data('conformance').map(({ suite, at, passed, failed, guarantees }) => [
    suite,
    Object.keys(guarantees).length,
    passed,
    failed,
    at.slice(0, 10),
  ]);
  return table(['suite', 'guarantees', 'cases passed', 'cases failed', 'run on'], rows);
}

function cases(): string {
  const groups = data('cases');
  const found = findCases(groups);
  return groups
    .map(({ group, cases: members }) => {
      const rows = members.map(({ id, what, first }) => [
        `\`${id}\``,
        what,
        (found.get(id) ?? []).map(sourceLink).join('<br>'),
        first ?? '',
      ]);
      return `### ${group}\n\n${table(['id', 'what must come out', 'tested in', 'what came out at first'], rows)}`;
    })
    .join('\n\n');
}

function bugs(): string {
  const rows = data('bugs').map(({ where, what, repeat, mended }) => [where, what, repeat, mended]);
  return table(['where', 'what happened', 'how to repeat it', 'mended in'], rows);
}
