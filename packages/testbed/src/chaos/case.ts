import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { type CheckResult, checkStory } from '../history/checker.js';
import { HISTORY_EXTENSION, readHistoryFolder } from '../history/read.js';
import { monotonicNow, Recorder } from '../history/recorder.js';
import { RULES } from '../history/rules/rule.js';
import { type Story, tellStory } from '../history/story.js';
import type { Random } from '../random/random.js';
import { Crew } from './crew.js';
import { RegisterServer } from './registers.js';
import type { ChaosFault, ChaosTarget, RunningTarget } from './target.js';
import { TIME_FACTOR } from './time-factor.js';

/** One fault on one backend, over and over. */
export interface CaseOptions {
  readonly target: ChaosTarget;
  readonly fault: ChaosFault;
  readonly random: Random;
  /** Goes on until it has done that many injections and that much time has passed. */
  readonly rounds: number;
  /** ms */
  readonly time: number;
  /** A module with which the workers spoil their backend. */
  readonly mutant?: string;
}

/** What came of it. */
export interface CaseResult {
  readonly backend: string;
  readonly fault: string;
  readonly rounds: number;
  /** The checker's verdict; `fail` as well when there were troubles. */
  readonly verdict: CheckResult['verdict'];
  readonly check: CheckResult;
  /** Workers that ended by themselves, did not end, or printed something. */
  readonly troubles: readonly string[];
  readonly story: Story;
  /** Where the histories are. Removed by the caller. */
  readonly folder: string;
}

const WORKERS = 4;
const LANES = 2;
const NAMES = ['apple', 'birch', 'cedar'] as const;

/** Runs one case from an empty server to the checker's verdict. */
export async function runCase(options: CaseOptions): Promise<CaseResult> {
  const { target, fault } = options;
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-chaos-'));
  const histories = join(folder, 'histories');
  const serverFolder = join(folder, 'server');
  await Promise.all([mkdir(histories), mkdir(serverFolder)]);
  const played = { rounds: 0, troubles: [] as string[] };
  try {
    await playOnServers(options, { serverFolder, histories, played });
  } catch (error) {
    played.troubles.push(`it could not be played to its end: ${inspect(error)}`);
  } finally {
    await rm(serverFolder, { recursive: true, force: true });
  }
  const story = tellStory(readHistoryFolder(histories));
  const check = checkStory(story, {
    fairness: fault.fairness ?? target.fairness,
    exclusion: fault.exclusion ?? target.exclusion,
    demand: RULES.filter((rule) => rule !== 'fairness'),
  });
  const verdict = played.troubles.length > 0 ? 'fail' : check.verdict;
  return { backend: target.id, fault: fault.id, ...played, verdict, check, story, folder };
}

/** How far it came, also when it did not come to its end. */
interface Played {
  rounds: number;
  readonly troubles: string[];
}

async function playOnServers(
  options: CaseOptions,
  scene: { readonly serverFolder: string; readonly histories: string; readonly played: Played },
): Promise<void> {
  const { target, fault } = options;
  const running = await target.start({
    folder: scene.serverFolder,
    workers: workersOf(target),
    namespaces: fault.namespaces === true,
  });
  try {
    await play(options, running, scene);
  } finally {
    await running.stop();
  }
}

async function play(
  options: CaseOptions,
  running: RunningTarget,
  { histories, played }: { readonly histories: string; readonly played: Played },
): Promise<void> {
  const { target, fault, random, mutant } = options;
  const recorder = new Recorder(join(histories, `testbed${HISTORY_EXTENSION}`), 'testbed');
  const registerLog = new Recorder(join(histories, `registers${HISTORY_EXTENSION}`), 'registers');
  await using registers = await RegisterServer.start(join(histories, 'registers.sock'), registerLog);
  const progress = new Progress(registers);
  const before = await running.leftovers();
  recorder.append({ type: 'levels', phase: 'before', scope: 'server', counts: before });

  await using crew = await Crew.start({
    troubles: played.troubles,
    folder: histories,
    recorder,
    random: random.fork('crew'),
    registers: registers.path,
    url: (worker) => running.url(worker),
    ...(mutant === undefined ? {} : { mutant }),
    workers: workersOf(target),
    lanes: target.crossProcess ? LANES : WORKERS * LANES,
    names: NAMES,
    ttl: target.ttl,
    clocks: fault.clocks === true,
  });
  const started = monotonicNow();
  while (played.rounds < options.rounds || monotonicNow() - started < options.time) {
    played.rounds += 1;
    await progress.everyName(boundOf(target, fault));
    await sleep(random.between(0, target.ttl.max / 2));
    await injectOnce(options, running, { crew, recorder, progress, id: `f${played.rounds}` });
    await crew.replenish();
  }
  await crew.stop();
  const after = await settled(running, before, boundOf(target, fault));
  recorder.append({ type: 'levels', phase: 'after', scope: 'server', counts: after });
  recorder.close();
  registerLog.close();
}

async function injectOnce(
  { target, fault, random }: CaseOptions,
  running: RunningTarget,
  scene: { crew: Crew; recorder: Recorder; progress: Progress; id: string },
): Promise<void> {
  const { crew, recorder, progress, id } = scene;
  const [first, ...others] = crew.members;
  if (first === undefined) throw new Error('no worker is left');
  // Most often whoever holds right now: the others have less to lose.
  const holder = crew.members.find(({ name }) => name === progress.lastWriter);
  const victim = holder !== undefined && random.chance(0.7) ? holder : random.pick([first, ...others]);
  const { min, max } = fault.lasts ?? { min: 0.5 * target.ttl.max, max: 1.5 * target.ttl.max };
  const lasts = random.between(min, max);
  const recoverWithin = boundOf(target, fault);
  const touches = fault.touches === 'worker' ? { touches: [victim.name] } : {};
  recorder.append({ type: 'fault', phase: 'inject', id, fault: fault.id, recoverWithin, ...touches });
  const heal = await fault.inject(running, { random, victim, crew, lasts });
  await sleep(lasts);
  await heal();
  recorder.append({ type: 'fault', phase: 'heal', id });
  // Past the bound, so that a name which nobody holds is seen to be asked for in vain.
  await progress.everyName(recoverWithin + target.ttl.max);
}

/** Where all callers share one process, it has as many lanes as the others together. */
function workersOf(target: ChaosTarget): number {
  return target.crossProcess ? WORKERS : 1;
}

function boundOf(target: ChaosTarget, fault: ChaosFault): number {
  return (fault.recoverWithin ?? target.recoverWithin) * TIME_FACTOR;
}

/** Sees by the registers that the names are held, and by whom. */
class Progress {
  readonly #registers: RegisterServer;
  lastWriter: string | undefined;

  constructor(registers: RegisterServer) {
    this.#registers = registers;
    registers.onWrite(({ writer }) => {
      this.lastWriter = writer;
    });
  }

  /** Resolves when every name has been written to from now on, or when the time is up. */
  async everyName(within: number): Promise<void> {
    const missing = new Set<string>(NAMES);
    const giveUp = new AbortController();
    const stopListening = this.#registers.onWrite(({ name }) => {
      missing.delete(name);
      if (missing.size === 0) giveUp.abort();
    });
    await sleep(within, undefined, { signal: giveUp.signal }).catch(() => {});
    stopListening();
  }
}

/** The levels once they are back where they were, or when the time is up: what the killed held goes with its ttl. */
async function settled(
  running: RunningTarget,
  before: Readonly<Record<string, number>>,
  within: number,
): Promise<Readonly<Record<string, number>>> {
  const deadline = monotonicNow() + within;
  for (;;) {
    const counts = await running.leftovers();
    const isBack = Object.entries(counts).every(([kind, count]) => count <= (before[kind] ?? 0));
    if (isBack || monotonicNow() > deadline) return counts;
    await sleep(100);
  }
}
