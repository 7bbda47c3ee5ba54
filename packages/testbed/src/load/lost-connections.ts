import type { LockHandle, Locks } from '@holdfast/core';
import type { RunningTarget } from '../chaos/target.js';
import { TIME_FACTOR } from '../chaos/time-factor.js';
import type { Wired } from '../chaos/wire-faults.js';
import { above, type Findings, type Scenario, type Scene, settled } from './scenario.js';

/** ms: what is lost at once is there again long before. */
const TTL = 30_000 * TIME_FACTOR;
const SETTLE_WITHIN = 15_000 * TIME_FACTOR;

/** Where each client has several connections, and the server a limit. */
const FEWER: Readonly<Record<string, number>> = { postgres: 20, mariadb: 40 };

/** Every client loses its connection in the same moment, holders and waiters alike. */
export const lostConnections: Scenario = {
  id: 'lost-connections',
  description: 'connections lost in the same moment cost no hold and no place in the queue',
  count: 200,
  notFor({ id }) {
    return id === 'memory' || id === 'sqlite' ? 'there are no connections' : undefined;
  },
  async play({ target, running, open, count }: Scene): Promise<Findings> {
    const wires = (running as RunningTarget & Wired).wires(0);
    const clients = Math.min(count, FEWER[target.id] ?? count);
    const before = await running.leftovers();
    const all: Locks[] = [];
    for (let client = 0; client < clients; client++) all.push(await open(0));
    const pairs = Array.from({ length: Math.floor(clients / 2) }, (_, index) => `pair ${index}`);
    const holds = await Promise.all(
      pairs.map((name, index) => lockOf(all, index).lock(name, { ttl: TTL }).acquire()),
    );
    const queued: Promise<unknown>[] = [];
    const waits = pairs.map((name, index) => {
      const locks = lockOf(all, pairs.length + index);
      queued.push(new Promise((resolve) => locks.on('waiting', resolve)));
      return locks.lock(name, { ttl: TTL }).acquire({ wait: '5m' });
    });
    await Promise.all(queued);
    const connections = wires.reduce((sum, wire) => sum + wire.connections, 0);
    const lost = performance.now();
    for (const wire of wires) wire.reset();
    const standing = await Promise.all(holds.map((hold) => hold.verify()));
    const verified = performance.now();
    const released = await Promise.all(holds.map((hold) => hold.release()));
    const theirs: LockHandle[] = await Promise.all(waits);
    const served = performance.now();
    await Promise.all(theirs.map((hold) => hold.release()));
    await Promise.all(all.map((locks) => locks.close()));
    const after = await settled(() => running.leftovers(), before, SETTLE_WITHIN);
    const gone = standing.filter((one) => !one).length;
    return {
      figures: {
        clients,
        connections,
        'verified after, ms': Math.round(verified - lost),
        'waiters served after, ms': Math.round(served - verified),
      },
      faults: [
        ...(gone > 0 ? [`${gone} of ${holds.length} holds were lost`] : []),
        ...(released.every(Boolean) ? [] : ['a release was false']),
        ...above('the servers', before, after),
      ],
    };
  },
};

function lockOf(all: readonly Locks[], index: number): Locks {
  const locks = all[index];
  if (locks === undefined) throw new Error(`there is no client ${index}`);
  return locks;
}
