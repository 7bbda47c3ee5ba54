import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@holdfast/core';
import { type ConnectionFlags, openLocks } from '../connection.js';
import { EXIT } from '../exit.js';
import { json, type Output } from '../output.js';
import { span } from '../text.js';
import { Crew, type HoldRecord } from './crew.js';
import { faultIn, listing, timeline } from './timeline.js';

/** The options of `demo`. */
export interface DemoFlags extends ConnectionFlags {
  readonly workers: number;
  readonly times: number;
  readonly json?: boolean;
}

/** A dead holder blocks the others for this long at most, in ms. */
const TTL = 2000;
const VICTIM = 2;

/** What a scene came to. */
interface Scene {
  readonly expected: number;
  readonly counted: number;
  readonly holds: readonly HoldRecord[];
}

/**
 * Shows what a lock is for: processes increment one counter, first without a lock, then under one, then with a holder
 * that is killed.
 *
 * @returns the exit code: 1 if the lock did not keep its promises
 */
export async function demo(flags: DemoFlags, output: Output): Promise<number> {
  const say = (text: string): void => (flags.json === true ? undefined : output.out(text));
  // Opened here first: a wrong configuration is told once, and the default says where it keeps the locks.
  const locks = await openLocks(flags);
  await locks.close();
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-demo-'));
  const file = join(folder, 'counter');
  const { workers, times } = flags;
  const name = `demo:${randomBytes(4).toString('hex')}`;
  const crew = await Crew.start(workers, flags);
  try {
    const scene = async (locked: boolean, expected: number, victim?: number): Promise<Scene> => {
      await writeFile(file, '0');
      const lock = locked ? { lock: { name, ttl: TTL } } : {};
      const holds = await crew.count({ file, times, startAt: systemClock.wall() + 100, ...lock }, victim);
      return { expected, counted: Number(await readFile(file, 'utf8')), holds };
    };
    const all = workers * times;

    say(
      `\n${workers} processes add 1 to a counter in a file, ${times} times each. Locks: ${locks.backend.name}.\n`,
    );
    const bare = await scene(false, all);
    say(
      `1. Without a lock: the counter says ${bare.counted} of ${all}. ${bare.expected - bare.counted} updates lost.\n`,
    );

    const locked = await scene(true, all);
    say(`2. Under a lock: the counter says ${locked.counted} of ${all}. ${lostWords(locked)}`);
    say(`   Who held ${name} when:\n\n${timeline(locked.holds, workers)}\n\n${listing(locked.holds, 8)}\n`);

    // The victim writes in its first two turns; the third is never finished.
    const killed = await scene(true, (workers - 1) * times + 2, VICTIM);
    say(`3. Worker ${VICTIM} is killed (kill -9) while it holds the lock, whose ttl is ${span(TTL)}:\n`);
    say(`${timeline(killed.holds, workers)}\n\n${aroundTheKill(killed.holds)}\n`);
    say(`   The counter says ${killed.counted} of ${killed.expected}. ${lostWords(killed)}\n`);

    const faults = [locked, killed].flatMap(({ holds }) => faultIn(holds) ?? []);
    const kept = faults.length === 0 && [locked, killed].every((each) => each.counted === each.expected);
    if (flags.json === true)
      output.out(json({ withoutLock: bare, withLock: locked, killedHolder: killed, faults }));
    say(
      kept
        ? 'No two held it at once, and every token was higher than the last.'
        : `WRONG: ${faults.join('; ')}`,
    );
    return kept ? EXIT.ok : EXIT.negative;
  } finally {
    await crew.dismiss();
    await rm(folder, { recursive: true });
  }
}

function lostWords({ expected, counted }: Scene): string {
  return counted === expected ? 'None lost.' : `${expected - counted} updates lost!`;
}

/** The holds next to the kill, and how long the recovery took. */
function aroundTheKill(holds: readonly HoldRecord[]): string {
  const index = holds.findIndex(({ killedAt }) => killedAt !== undefined);
  const [dead, next] = [holds[index], holds[index + 1]];
  const lines = listing(holds.slice(Math.max(0, index - 1), index + 3), 4);
  if (dead?.killedAt === undefined || next === undefined) return lines;
  return `${lines}\n\n   Worker ${next.worker} had it ${span(next.from - dead.killedAt)} after the kill; its token is higher.`;
}
