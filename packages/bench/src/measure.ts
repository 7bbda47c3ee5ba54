import { commandCounter } from './commands.js';
import { SubjectProcess } from './process.js';
import type { Figure, Scenario } from './results.js';
import type { Finding } from './scenarios.js';
import { startServer } from './servers.js';
import { median } from './stats.js';
import type { Backend, Subject } from './subject.js';
import { subjects } from './subjects/index.js';

/** How much is measured. */
export interface Effort {
  /** Rounds of each subject, in turn. The first one warms up and does not count. */
  readonly rounds: number;
  /** Length of one measurement, ms. */
  readonly ms: number;
  readonly waiters: number;
  readonly processes: number;
}

type Samples = Map<string, { subject: Subject; scenario: Scenario; unit: string; values: number[] }>;

/** Measures every subject of a backend on one server, in interleaved rounds. */
export async function measure(
  backend: Backend,
  effort: Effort,
  log: (line: string) => void,
): Promise<Figure[]> {
  const server = await startServer(backend);
  const samples: Samples = new Map();
  const own = subjects.filter((subject) => subject.backend === backend);
  try {
    for (let round = 0; round <= effort.rounds; round++) {
      for (const subject of own) {
        log(`${backend}: round ${round} of ${effort.rounds}: ${subject.name}`);
        const found = await uncontended(subject, server.url, effort);
        if (subject.waits) found.push(...(await contended(subject, server.url, effort, own)));
        if (round > 0)
          for (const [scenario, unit, value] of found) add(samples, subject, scenario, unit, value);
      }
    }
    for (const subject of own.filter((one) => one.kind === 'holdfast')) {
      for (const [scenario, unit, value] of await once(subject, server.url, log)) {
        add(samples, subject, scenario, unit, value);
      }
    }
  } finally {
    await server.stop();
  }
  return [...samples.values()].map(({ subject, scenario, unit, values }) => ({
    backend,
    subject: subject.name,
    kind: subject.kind,
    scenario,
    unit,
    median: median(values),
    min: Math.min(...values),
    max: Math.max(...values),
  }));
}

type Found = [scenario: Scenario, unit: string, value: number][];

async function uncontended(subject: Subject, url: string, { ms }: Effort): Promise<Found> {
  const worker = await SubjectProcess.start(subject, url);
  try {
    await worker.perform({ kind: 'sequential', ms: ms / 4 });
    const sequential = await worker.perform({ kind: 'sequential', ms });
    const parallel = await worker.perform({ kind: 'parallel', loops: 100, ms });
    return [
      ['sequential', 'pairs/s', perSecond(sequential)],
      ['parallel', 'pairs/s', perSecond(parallel)],
    ];
  } finally {
    await worker.close();
  }
}

/** Waiters over several processes on one name, with the raw round trip measured beside them. */
async function contended(
  subject: Subject,
  url: string,
  effort: Effort,
  own: readonly Subject[],
): Promise<Found> {
  const crossProcess = subject.backend !== 'memory';
  const processes = crossProcess ? effort.processes : 1;
  const workers = await Promise.all(
    Array.from({ length: processes }, () => SubjectProcess.start(subject, url)),
  );
  const floor = own.find((one) => one.kind === 'floor');
  const prober = floor === undefined ? undefined : await SubjectProcess.start(floor, url);
  try {
    const waiters = Math.floor(effort.waiters / processes);
    const task = { kind: 'contended', waiters, ms: effort.ms, name: `contended-${Date.now()}` } as const;
    const probing = prober?.perform({ kind: 'probe', ms: effort.ms });
    const findings = await Promise.all(workers.map((worker) => worker.perform(task)));
    const found = summarise(findings);
    const latencies = await probing;
    if (latencies?.kind === 'latencies')
      found.push(['raw round trip under load', 'ms', median(latencies.ms)]);
    return found;
  } finally {
    await Promise.all(
      [...workers, ...(prober === undefined ? [] : [prober])].map((worker) => worker.close()),
    );
  }
}

function summarise(findings: readonly Finding[]): Found {
  const holds: (readonly [number, number])[] = [];
  const grants: number[] = [];
  for (const finding of findings) {
    if (finding.kind !== 'contended') throw new Error(`unexpected finding ${finding.kind}`);
    holds.push(...finding.holds);
    grants.push(...finding.grantsOfWaiter);
  }
  holds.sort(([a], [b]) => a - b);
  const gaps = holds.slice(1).map(([granted], index) => granted - (holds[index]?.[1] ?? granted));
  const [first] = holds[0] ?? [0];
  const [last] = holds.at(-1) ?? [1];
  return [
    ['contended grants', 'grants/s', (holds.length / (last - first)) * 1000],
    ['contended hand-over', 'ms', median(gaps)],
    ['contended spread', 'most over least', Math.max(...grants) / Math.max(1, Math.min(...grants))],
  ];
}

/** What is measured once, of this project alone. */
async function once(subject: Subject, url: string, log: (line: string) => void): Promise<Found> {
  const found: Found = [];
  const counter = await commandCounter(subject.backend, url);
  if (counter !== undefined) {
    for (const waiters of [10, 100, 1000] as const) {
      log(`${subject.backend}: commands per hand-over with ${waiters} waiters`);
      const worker = await SubjectProcess.start(subject, url);
      const before = await counter.count();
      const finding = await worker.perform({
        kind: 'contended',
        waiters,
        ms: 4000,
        name: `commands-${waiters}`,
      });
      const commands = (await counter.count()) - before;
      await worker.close();
      const grants = finding.kind === 'contended' ? finding.holds.length : Number.NaN;
      found.push([`commands per hand-over, ${waiters} waiters`, 'commands', commands / grants]);
    }
    await counter.close();
  }
  log(`${subject.backend}: holding 10,000 locks`);
  const holder = await SubjectProcess.start(subject, url);
  const held = await holder.perform({ kind: 'hold', locks: 10_000, ms: 20_000 });
  await holder.close();
  if (held.kind === 'hold') {
    found.push(
      ['holding 10,000: cores', 'cores', held.cores],
      ['holding 10,000: MiB', 'MiB', held.rss / 2 ** 20],
    );
  }
  return found;
}

function add(samples: Samples, subject: Subject, scenario: Scenario, unit: string, value: number): void {
  const key = `${subject.name}\n${scenario}`;
  const present = samples.get(key) ?? { subject, scenario, unit, values: [] };
  present.values.push(value);
  samples.set(key, present);
}

function perSecond(finding: Finding): number {
  return finding.kind === 'rate' ? finding.perSecond : Number.NaN;
}
