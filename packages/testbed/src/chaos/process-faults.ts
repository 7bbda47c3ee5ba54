import type { ChaosFault, ChaosTarget } from './target.js';

const HOUR = 3_600_000;

/** kill −9 of a worker, at any point of its work. A new one takes its place. */
const kill9: ChaosFault = {
  id: 'kill9',
  description: 'a worker is killed with −9',
  touches: 'worker',
  lasts: { min: 0, max: 0 },
  async inject(_running, { crew, victim }) {
    await crew.kill(victim);
    return () => {};
  },
};

/** A worker stands still past its ttl, and goes on as if nothing had been. */
const sigstop: ChaosFault = {
  id: 'sigstop',
  description: 'a worker is stopped past its ttl, and continued',
  touches: 'worker',
  async inject(_running, { victim }) {
    await victim.worker.pause();
    return () => victim.worker.resume();
  },
};

/** A worker's event loop does not turn, while its process runs. */
const blockedLoop: ChaosFault = {
  id: 'blocked-loop',
  description: "a worker's event loop is blocked past its ttl",
  touches: 'worker',
  async inject(_running, { victim, lasts }) {
    await victim.worker.block(lasts);
    return async () => {
      await victim.worker.call('ping');
    };
  },
};

/** A worker's wall clock is an hour off, then right again. */
const clock: ChaosFault = {
  id: 'clock',
  description: "a worker's wall clock jumps by an hour, and back",
  touches: 'worker',
  clocks: true,
  async inject(_running, { victim, random }) {
    if (victim.clock === undefined) throw new Error(`${victim.name} has no clock of its own`);
    const { clock } = victim;
    clock.set(random.pick([-HOUR, HOUR]));
    return () => clock.set(0);
  },
};

/** Nothing goes wrong: what must hold in any case, and a run to compare the others with. */
const none: ChaosFault = {
  id: 'none',
  description: 'nothing goes wrong',
  touches: 'worker',
  async inject() {
    return () => {};
  },
};

/** Every fault of a target: those of its processes, then its own. */
export function faultsOf(target: ChaosTarget): readonly ChaosFault[] {
  const process = target.crossProcess
    ? [none, kill9, sigstop, blockedLoop, clock]
    : [none, sigstop, blockedLoop];
  return [...process, ...target.faults];
}
