import { commandCounter } from './commands.js';
import { type Found, underContention } from './contention.js';
import { lengthFor } from './length.js';
import { SubjectProcess } from './process.js';
import type { Profile } from './profile.js';
import type { BackendResults, Effort, Scenario } from './results.js';
import { type Finding, now, type Task } from './scenarios.js';
import { startServer } from './servers.js';
import { median } from './stats.js';
import type { Backend, Subject } from './subject.js';
import { subjects } from './subjects/index.js';

type Samples = Map<string, { subject: Subject; scenario: Scenario; unit: string; values: number[] }>;

/** Measures every subject of a backend, or those named in `only`, on one server, in interleaved rounds. */
export async function measure(
  backend: Backend,
  effort: Effort,
  log: (line: string) => void,
  only?: readonly string[],
): Promise<Pick<BackendResults, 'figures' | 'profile'>> {
  const server = await startServer(backend);
  const samples: Samples = new Map();
  const own = subjects.filter((subject) => subject.backend === backend);
  const measured = own.filter((subject) => only?.includes(subject.name) ?? true);
  const keep = (subject: Subject, found: Found): void => {
    for (const [scenario, unit, value] of found) add(samples, subject, scenario, unit, value);
  };
  let profile: Profile | undefined;
  try {
    for (let round = 0; round <= effort.rounds; round++) {
      // The first round only warms up: the server's caches, the files of the database.
      const warmUp = round === 0;
      const how = warmUp ? { ...effort, ms: effort.ms / 4 } : effort;
      const which = `${backend}: ${warmUp ? 'warm-up' : `round ${round} of ${effort.rounds}`}`;
      log(`${which}: uncontended`);
      const alone = await uncontended(measured, server.url, how);
      for (const subject of measured) {
        const found = alone.get(subject) ?? [];
        if (subject.waits) {
          log(`${which}: contended: ${subject.name}`);
          found.push(...(await contended(subject, server.url, how, own)));
        }
        if (!warmUp) keep(subject, found);
      }
    }
    if (backend !== 'memory') {
      for (let round = 1; round <= effort.rounds; round++) {
        for (const subject of measured.filter(({ waits }) => waits)) {
          log(`${backend}: a killed holder, ${round} of ${effort.rounds}: ${subject.name}`);
          keep(subject, await recovery(subject, server.url));
        }
      }
    }
    for (const subject of measured.filter((one) => one.kind === 'holdfast')) {
      keep(subject, await once(subject, server.url, effort, log));
      profile = await profiled(subject, server.url, effort);
    }
  } finally {
    await server.stop();
  }
  const figures = [...samples.values()].map(({ subject, scenario, unit, values }) => ({
    subject: subject.name,
    kind: subject.kind,
    scenario,
    unit,
    median: median(values),
    min: Math.min(...values),
    max: Math.max(...values),
  }));
  return profile === undefined ? { figures } : { figures, profile };
}

/** Of each measurement's length, in each process and before it. */
const WARM_UP = 2;

/** Into which each uncontended measurement is cut. */
const SLICES = 20;

/**
 * Every subject in a process of its own, all of them open, and each runs for a moment in turn: what else the machine does
 * comes and goes in seconds, and so meets all alike.
 */
async function uncontended(
  measured: readonly Subject[],
  url: string,
  { ms }: Effort,
): Promise<Map<Subject, Found>> {
  const workers = new Map<Subject, SubjectProcess>();
  try {
    for (const subject of measured) workers.set(subject, await SubjectProcess.start(subject, url));
    // A process runs slowly at first: its code is compiled while it runs, the more there is of it the longer.
    const sequential = await inTurns(workers, { kind: 'sequential', ms }, ms * WARM_UP);
    const parallel = await inTurns(workers, { kind: 'parallel', loops: 100, ms }, ms / 2);
    return new Map(
      measured.map((subject) => {
        const many = parallel.get(subject) ?? [];
        return [
          subject,
          [
            ['sequential', 'pairs/s', median((sequential.get(subject) ?? []).map((rate) => rate.perSecond))],
            ['parallel', 'pairs/s', median(many.map((rate) => rate.perSecond))],
            ['client processor time', 'ms/pair', median(many.map((rate) => rate.cpuPerOperation))],
          ],
        ];
      }),
    );
  } finally {
    await Promise.all([...workers.values()].map((worker) => worker.close()));
  }
}

type Rate = Extract<Finding, { kind: 'rate' }>;

/** After a warm-up each, cuts the task into slices and gives them out in turn. */
async function inTurns(
  workers: ReadonlyMap<Subject, SubjectProcess>,
  task: Extract<Task, { kind: 'sequential' | 'parallel' }>,
  warmUp: number,
): Promise<Map<Subject, Rate[]>> {
  const rates = new Map<Subject, Rate[]>();
  for (const worker of workers.values()) await worker.perform({ ...task, ms: warmUp });
  for (let slice = 0; slice < SLICES; slice++) {
    for (const [subject, worker] of workers) {
      const finding = await worker.perform({ ...task, ms: task.ms / SLICES });
      if (finding.kind !== 'rate') throw new Error(`unexpected finding ${finding.kind}`);
      rates.set(subject, [...(rates.get(subject) ?? []), finding]);
    }
  }
  return rates;
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
    const warmUp = {
      kind: 'contended',
      waiters,
      ms: effort.ms * WARM_UP,
      name: `warm-up-${Date.now()}`,
    } as const;
    const warm = await Promise.all(workers.map((worker) => worker.perform(warmUp)));
    const ms = lengthFor(effort, warm);
    const task = { kind: 'contended', waiters, ms, name: `contended-${Date.now()}` } as const;
    const probing = prober?.perform({ kind: 'probe', ms });
    const findings = await Promise.all(workers.map((worker) => worker.perform(task)));
    const found = underContention(findings);
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

/** How long a name stays taken after its holder was killed. */
async function recovery(subject: Subject, url: string): Promise<Found> {
  const name = `recovery-${Date.now()}`;
  const [holder, waiter] = await Promise.all([
    SubjectProcess.start(subject, url),
    SubjectProcess.start(subject, url),
  ]);
  try {
    await holder.perform({ kind: 'take', name, ttl: 2000 });
    const waiting = waiter.perform({ kind: 'take', name, ttl: 2000 });
    // Long enough for the waiter to be in its place, whichever way it waits.
    await new Promise((resolve) => setTimeout(resolve, 300));
    const killed = now();
    holder.kill();
    const taken = await waiting;
    const value = taken.kind === 'taken' ? taken.at - killed : Number.NaN;
    return [['recovery from a killed holder, ttl 2 s', 'ms', value]];
  } finally {
    holder.kill();
    // It holds what nobody gives back, in a database of this run alone.
    waiter.kill();
  }
}

/** What is measured once, of this project alone. */
async function once(
  subject: Subject,
  url: string,
  effort: Effort,
  log: (line: string) => void,
): Promise<Found> {
  const found = await commandsPerHandOver(subject, url, effort, log);
  log(`${subject.backend}: holding 10,000 locks`);
  const holder = await SubjectProcess.start(subject, url);
  // More than the 10 s after which locks of the default ttl are renewed.
  const held = await holder.perform({ kind: 'hold', locks: 10_000, ms: Math.min(20_000, effort.ms * 10) });
  await holder.close();
  if (held.kind === 'hold') {
    found.push(
      ['holding 10,000: cores', 'cores', held.cores],
      ['holding 10,000: MiB', 'MiB', held.rss / 2 ** 20],
    );
  }
  return found;
}

async function profiled(subject: Subject, url: string, { ms }: Effort): Promise<Profile | undefined> {
  const worker = await SubjectProcess.start(subject, url);
  try {
    await worker.perform({ kind: 'sequential', ms: ms * WARM_UP });
    const finding = await worker.perform({ kind: 'profile', ms });
    return finding.kind === 'profile' ? finding.profile : undefined;
  } finally {
    await worker.close();
  }
}

/** Each waiter takes one last turn at the end: with a thousand of them that may last too long. */
const LONGEST_END = 15_000;

/** Requests to the server for each grant, everything that waiting costs included. */
async function commandsPerHandOver(
  subject: Subject,
  url: string,
  { ms }: Effort,
  log: (line: string) => void,
): Promise<Found> {
  const counter = commandCounter(subject.backend, url);
  if (counter === undefined) return [];
  const found: Found = [];
  let handOver = 0;
  try {
    for (const waiters of [10, 100, 1000] as const) {
      if (handOver * waiters > LONGEST_END) {
        log(`${subject.backend}: not with ${waiters} waiters, ${handOver.toFixed(0)} ms each`);
        break;
      }
      log(`${subject.backend}: commands per hand-over with ${waiters} waiters`);
      const before = await counter.count();
      const worker = await SubjectProcess.start(subject, url);
      const started = now();
      const finding = await worker.perform({ kind: 'contended', waiters, ms, name: `commands-${waiters}` });
      const elapsed = now() - started;
      // Some servers count a connection's requests when it ends.
      await worker.close();
      const commands = (await counter.count()) - before;
      const grants = finding.kind === 'contended' ? finding.holds.length : Number.NaN;
      handOver = elapsed / grants;
      found.push([`commands per hand-over, ${waiters} waiters`, 'commands', commands / grants]);
    }
  } finally {
    await counter.close();
  }
  return found;
}

function add(samples: Samples, subject: Subject, scenario: Scenario, unit: string, value: number): void {
  const key = `${subject.name}\n${scenario}`;
  const present = samples.get(key) ?? { subject, scenario, unit, values: [] };
  present.values.push(value);
  samples.set(key, present);
}
