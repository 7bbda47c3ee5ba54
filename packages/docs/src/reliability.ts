import { basename } from 'node:path';
import { type ChaosTarget, faultsOf, matrixOf, TARGETS } from '@holdfast/testbed';
import { findCases } from './cases.js';
import { type ChaosRow, data, TITLES, type Topology } from './data.js';
import { sourceLink, table } from './markdown.js';
import { filesUnder, read } from './workspace.js';

/** The blocks of `docs/reliability.md`. */
export const reliabilityBlocks: Readonly<Record<string, () => string>> = {
  matrix,
  mutants,
  loads,
  timelines,
  cases,
  bugs,
  suites,
};

/** Fault by topology: what was granted, signalled, violated, and how long it took to go on. */
function matrix(): string {
  const rows = data('chaos');
  return TARGETS.map((target) => {
    const own = rows.filter(({ backend }) => backend === target.id);
    const title = TITLES[target.id as Topology] ?? target.description;
    return `### ${title}\n\n${faultTable(target, own)}${inapplicable(target)}`;
  }).join('\n\n');
}

/** Every fault that the topology has, also those without a recorded run. */
function faultTable(target: ChaosTarget, rows: readonly ChaosRow[]): string {
  const head = [
    'fault',
    'what happens',
    'injections',
    'grants',
    'losses signalled',
    'violations',
    'longest recovery, ms',
    'stale writes refused',
    'promise',
    'verdict',
  ];
  const body = faultsOf(target).map(({ id, description, exclusion = target.exclusion }) => {
    const promise = exclusion === 'promised' ? 'exclusion' : 'fencing';
    const row = rows.find(({ fault }) => fault === id);
    if (row === undefined)
      return [`\`${id}\``, description, ...Array<string>(6).fill('–'), promise, 'not recorded'];
    const { injections, grants, lost, violations, longestRecovery, refused, verdict, seed } = row;
    const counts = [injections, grants, lost, violations, longestRecovery, refused];
    return [`\`${id}\``, description, ...counts, promise, `${verdict}, seed ${seed}`];
  });
  return table(head, body);
}

/** What other topologies are put under and this one is not, with the reason; kinds with the same reason together. */
function inapplicable(target: ChaosTarget): string {
  const kinds = new Map<string, string[]>();
  for (const { kind, reason } of matrixOf(target)) {
    if (reason !== undefined) kinds.set(reason, [...(kinds.get(reason) ?? []), kind]);
  }
  if (kinds.size === 0) return '';
  const lines = [...kinds].map(([reason, of]) => `- ${of.join('; ')}: ${reason}.`);
  return `\n\nDoes not apply:\n\n${lines.join('\n')}`;
}

/** Backends that were spoiled on purpose: what the runner is worth. */
function mutants(): string {
  const rows = data('mutants').map(({ mutant, backend, fault, seed, verdict, violations, broken }) => [
    `\`${mutant}\``,
    descriptionOf(mutant),
    `${TITLES[backend as Topology] ?? backend}, \`${fault}\`, seed ${seed}`,
    violations,
    broken.map((rule) => `\`${rule}\``).join(', '),
    verdict === 'pass' ? 'not caught' : 'caught',
  ]);
  return table(['mutant', 'what is spoiled', 'where', 'violations', 'rules broken', 'verdict'], rows);
}

/** As its file says. */
function descriptionOf(mutant: string): string {
  const source = read(`packages/testbed/src/chaos/mutants/${mutant}.ts`);
  return /\/\*\* ([^\n]*?)\.? \*\/\nexport const mutate/.exec(source)?.[1] ?? '';
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

/** What came of each load, on each backend. */
function loads(): string {
  const rows = data('load').map(({ backend, scenario, count, seconds, seed, figures, faults }) => [
    TITLES[backend as Topology] ?? backend,
    `\`${scenario}\``,
    count,
    Object.entries(figures)
      .map(([what, value]) => `${what} ${value}`)
      .join('; '),
    faults.length === 0 ? 'none' : faults.join('; '),
    seconds,
    seed,
  ]);
  return table(['backend', 'load', 'how many', 'what was seen', 'faults', 's', 'seed'], rows);
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
