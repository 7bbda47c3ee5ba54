import type { LockHandle } from '@holdfast/core';
import type { Served } from '../chaos/server-faults.js';
import type { RunningTarget } from '../chaos/target.js';
import { TIME_FACTOR } from '../chaos/time-factor.js';
import { above, type Findings, type Scenario, type Scene, settled } from './scenario.js';

/** ms: longer than any server takes to come back, and short enough to be renewed meanwhile. */
const TTL = 60_000 * TIME_FACTOR;

/** Acquisitions under way at a time. */
const AT_A_TIME = 200;

const SETTLE_WITHIN = 15_000 * TIME_FACTOR;

/** One process holds many names while its server goes away and comes back. */
export const restart: Scenario = {
  id: 'restart',
  description: 'names held at once by one process stay held through a restart of the server',
  count: 10_000,
  notFor({ id }) {
    if (id === 'memory' || id === 'sqlite') return 'there is no server';
    if (/sentinel|cluster|quorum/.test(id))
      return 'a whole ensemble does not restart; chaos takes its members one by one';
    return undefined;
  },
  async play({ target, running, open, count }: Scene): Promise<Findings> {
    const { servers } = running as RunningTarget & Served;
    const before = await running.leftovers();
    const locks = await open(0);
    const names = Array.from({ length: count }, (_, index) => `name ${index}`);
    const started = performance.now();
    const holds = await inTurns(names, (name) => locks.lock(name, { ttl: TTL }).acquire());
    const taken = performance.now();
    await servers.node.restart({ by: 'kill' });
    const back = performance.now();
    const verified = await inTurns(holds, (hold) => standing(hold));
    const asked = performance.now();
    const released = await inTurns(holds, (hold) => hold.release());
    const figures = {
      'acquisitions/s': Math.round(count / ((taken - started) / 1000)),
      'server away, ms': Math.round(back - taken),
      'verified, ms': Math.round(asked - back),
      held: verified.filter((one) => one === 'held').length,
      lost: verified.filter((one) => one === 'lost').length,
      'released, ms': Math.round(performance.now() - asked),
    };
    await locks.close();
    const after = await settled(() => running.leftovers(), before, SETTLE_WITHIN);
    const contradictory = verified.filter((one) => one === 'unclear').length;
    // A session may end with its server; what ends is told.
    const mayLose = locks.backend.capabilities.expiry === 'session';
    return {
      figures,
      faults: [
        ...(figures.held === 0 ? ['nothing was held any more'] : []),
        ...(contradictory > 0 ? [`${contradictory} are neither held nor told lost`] : []),
        ...(figures.lost > 0 && !mayLose
          ? [`${figures.lost} of ${count} were lost (${target.id} keeps what it had)`]
          : []),
        ...(released.filter(Boolean).length === figures.held ? [] : ['what was held could not be released']),
        ...above('the servers', before, after),
      ],
    };
  },
};

async function standing(hold: LockHandle): Promise<'held' | 'lost' | 'unclear'> {
  if (await hold.verify()) return 'held';
  return hold.signal.aborted ? 'lost' : 'unclear';
}

async function inTurns<T, R>(items: readonly T[], act: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let index = 0; index < items.length; index += AT_A_TIME)
    results.push(...(await Promise.all(items.slice(index, index + AT_A_TIME).map(act))));
  return results;
}
