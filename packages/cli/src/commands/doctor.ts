import { randomBytes } from 'node:crypto';
import { type Diagnosis, type Locks, systemClock } from '@holdfast/core';
import { EXIT } from '../exit.js';
import { json, type Output } from '../output.js';
import { fineSpan, printable, span } from '../text.js';

/** The options of `doctor`. */
export interface DoctorFlags {
  /** Warnings make the exit code 1 too. */
  readonly strict?: boolean;
  readonly json?: boolean;
}

const ROUNDS = 15;
/** A server's clock that is this far from ours is worth a word, in ms. */
const FAR_OFF = 1000;
const MARKS: Readonly<Record<Diagnosis['level'], string>> = {
  ok: 'ok      ',
  info: 'info    ',
  warning: 'WARNING ',
  danger: 'DANGER  ',
};

/**
 * Measures the way to the backend and back, takes and gives back a lock, and tells what the server's settings mean.
 *
 * @returns the exit code: 1 when something is dangerous, or with `strict` when there is a warning
 */
export async function doctor(locks: Locks, flags: DoctorFlags, output: Output): Promise<number> {
  const { name, capabilities } = locks.backend;
  const roundTrip = await measure(() => locks.inspect(`doctor:${randomBytes(6).toString('hex')}`));
  const cycle = await measure(async () => {
    const hold = await locks
      .lock(`doctor:${randomBytes(6).toString('hex')}`, { ttl: '30s' })
      .acquire({ wait: '5s' });
    await hold.release();
  });
  const said = await locks.diagnose();
  const clock = said.some(({ id }) => id.includes('clock')) ? [] : await clockOffset(locks);
  const findings = [...capabilityFindings(locks), ...clock, ...said];

  if (flags.json === true) output.out(json({ backend: name, capabilities, roundTrip, cycle, findings }));
  else {
    output.out(
      `backend       ${printable(name)}: ${capabilities.consistency}, ${capabilities.fairness === 'fifo' ? 'first in, first out' : 'no order'}`,
    );
    output.out(`round trip    median ${fineSpan(roundTrip.median)}, slowest ${fineSpan(roundTrip.slowest)}`);
    output.out(`take + give   median ${fineSpan(cycle.median)}, slowest ${fineSpan(cycle.slowest)}\n`);
    for (const finding of findings) output.out(describe(finding));
  }
  const bad = findings.some(
    ({ level }) => level === 'danger' || (flags.strict === true && level === 'warning'),
  );
  return bad ? EXIT.negative : EXIT.ok;
}

async function measure(
  work: () => Promise<unknown>,
): Promise<{ readonly median: number; readonly slowest: number }> {
  const times: number[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const started = systemClock.now();
    await work();
    // The first one may open a connection.
    if (round > 0) times.push(systemClock.now() - started);
  }
  times.sort((a, b) => a - b);
  return { median: times[Math.floor(times.length / 2)] ?? 0, slowest: times.at(-1) ?? 0 };
}

function capabilityFindings(locks: Locks): readonly Diagnosis[] {
  const { crossProcess, expiry, grace, ttl } = locks.backend.capabilities;
  const who = expiry === 'session' ? 'the session’s end' : 'its ttl';
  const facts: Diagnosis[] = [
    {
      level: 'ok',
      id: 'recovery',
      finding: `a dead holder’s lock is freed at ${who} (ttl at least ${span(ttl.min)}); a dead waiter delays the queue by at most ${span(grace)}`,
    },
  ];
  if (!crossProcess) {
    const finding = 'these locks serve this process alone: other processes do not meet them';
    facts.push({
      level: 'danger',
      id: 'in-process',
      finding,
      advice: 'choose another backend, unless one process is all there is',
    });
  }
  return facts;
}

/** How far the backend's clock is from this machine's, by the time that it gives to a grant. */
async function clockOffset(locks: Locks): Promise<readonly Diagnosis[]> {
  const before = systemClock.wall();
  const hold = await locks.lock(`doctor:${randomBytes(6).toString('hex')}`).acquire({ wait: '5s' });
  const after = systemClock.wall();
  const { acquiredAt } = await locks.inspect(hold.name);
  await hold.release();
  if (acquiredAt === undefined) return [];
  const offset = Math.max(acquiredAt.getTime() - after, 0) + Math.min(acquiredAt.getTime() - before, 0);
  const apart = `is ${span(Math.abs(offset))} ${offset < 0 ? 'behind' : 'ahead of'}`;
  const finding = `its clock ${offset === 0 ? 'agrees with' : apart} this machine’s`;
  if (Math.abs(offset) < FAR_OFF) return [{ level: 'ok', id: 'clock-offset', finding }];
  const advice =
    'keep clocks in step (NTP): expiry does not suffer, but times shown and tokens come from the server';
  return [{ level: 'warning', id: 'clock-offset', finding, advice }];
}

function describe({ level, finding, advice }: Diagnosis): string {
  const todo = advice === undefined ? '' : `\n${' '.repeat(8)}→ ${printable(advice)}`;
  return `${MARKS[level]}${printable(finding)}${todo}`;
}
