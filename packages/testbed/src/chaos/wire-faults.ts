import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultProxy } from '../proxy/proxy.js';
import { startProxy } from '../proxy/proxy.js';
import type { ServerNode } from '../servers/handle.js';
import { allOrNone } from './assembled.js';
import type { ChaosFault, FaultContext, Heal, RunningTarget } from './target.js';

/** A target whose clients reach it through proxies. */
export interface Wired extends RunningTarget {
  /** Between this worker and the servers; all there are, where the servers announce proxies that everybody shares. */
  wires(worker: number): readonly FaultProxy[];
}

/** Proxies of its own for each worker, to every node. */
export class Wires implements AsyncDisposable {
  readonly #byWorker: readonly (readonly FaultProxy[])[];

  private constructor(byWorker: readonly (readonly FaultProxy[])[]) {
    this.#byWorker = byWorker;
  }

  static async start(nodes: readonly ServerNode[], workers: number): Promise<Wires> {
    const places = Array.from({ length: workers }, () => nodes);
    const proxies = await allOrNone(
      places.flat().map(({ host, port }) => startProxy({ target: { host, port } })),
    );
    return new Wires(
      places.map((_, worker) => proxies.slice(worker * nodes.length, (worker + 1) * nodes.length)),
    );
  }

  of(worker: number): readonly FaultProxy[] {
    return this.#byWorker[worker] ?? [];
  }

  /** `h1:p1,h2:p2`, as this worker must dial them. */
  addresses(worker: number): string {
    return this.of(worker)
      .map(({ address }) => address)
      .join(',');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#byWorker.flat().map((proxy) => proxy.stop()));
  }
}

/** One way in which a wire can fail. `strike` begins it; what it returns ends it. */
interface WireFault {
  readonly id: string;
  readonly description: string;
  strike(wires: readonly FaultProxy[], context: FaultContext): Promise<Heal> | Heal;
}

const WIRE_FAULTS: readonly WireFault[] = [
  {
    id: 'partition',
    description: 'nothing passes and nothing is closed, past the ttl',
    strike: (wires) => together(wires.map((wire) => wire.blackHole())),
  },
  {
    id: 'answers-held',
    description: 'requests arrive, their answers do not, until much later',
    strike: (wires) => together(wires.map((wire) => wire.blackHole('down'))),
  },
  {
    id: 'answers-dropped',
    description: 'requests arrive, answers are thrown away and the connection is reset',
    strike: (wires) => together(wires.map((wire) => wire.dropAnswerTo(() => true, { times: 4 }))),
  },
  {
    id: 'answers-cut',
    description: 'answers are cut in the middle and the connection is reset',
    strike: (wires) => together(wires.map((wire) => wire.cutAnswerTo(() => true, { times: 4 }))),
  },
  {
    id: 'resets',
    description: 'connections are reset over and over',
    strike: (wires, { random }) =>
      repeat(
        () => {
          for (const wire of wires) wire.reset();
        },
        () => random.between(50, 400),
      ),
  },
  {
    id: 'slow',
    description: 'every packet takes 20 to 200 ms more',
    strike: (wires) => together(wires.map((wire) => wire.delay({ up: 20, down: 20, jitter: 180 }))),
  },
  {
    id: 'refused',
    description: 'connections are reset, and refused until it heals',
    async strike(wires) {
      const refusals = await Promise.all(wires.map((wire) => wire.refuse()));
      for (const wire of wires) wire.reset();
      return together(refusals);
    },
  },
];

/**
 * What wires do to their clients.
 *
 * @param touches `worker` where each worker has wires of its own, `everybody` where they share them
 */
export function wireFaults(touches: ChaosFault['touches']): readonly ChaosFault<Wired>[] {
  return WIRE_FAULTS.map(({ id, description, strike }) => ({
    id,
    description: `${touches === 'worker' ? 'one worker' : 'all'}: ${description}`,
    touches,
    inject: async (running, context) => strike(running.wires(context.victim.index), context),
  }));
}

function together(faults: readonly { heal(): void }[]): Heal {
  return () => {
    for (const fault of faults) fault.heal();
  };
}

/** Does it now and again until healed. */
function repeat(action: () => void, pause: () => number): Heal {
  const over = new AbortController();
  const loop = async (): Promise<void> => {
    while (!over.signal.aborted) {
      action();
      await sleep(pause(), undefined, { signal: over.signal }).catch(() => {});
    }
  };
  const done = loop();
  return async () => {
    over.abort();
    await done;
  };
}
