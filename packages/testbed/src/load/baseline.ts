import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isHoldfastError, type Locks } from '@holdfast/core';
import { countResources, countSettled } from '../chaos/resources.js';
import type { ChaosTarget } from '../chaos/target.js';
import { TIME_FACTOR } from '../chaos/time-factor.js';
import type { Random } from '../random/random.js';
import { above, type Findings, type Scenario, type Scene, settled } from './scenario.js';

/** Callers side by side. */
const LANES = 40;

/** Bytes by which the heap differs without a leak. Ten thousand acquisitions that each left one small object exceed it. */
const NOISE = 384 * 1024;

/** ms for timers that end by themselves, and for what the killed and the lost have at the server. */
const SETTLE_WITHIN = 15_000 * TIME_FACTOR;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/**
 * Acquisitions that end in every way there is, thousands of them. Then everything must be where it was: timers,
 * sockets and listeners of the process, listeners on the caller's signal, what the servers have, the heap.
 */
export const baseline: Scenario = {
  id: 'baseline',
  description: 'acquisitions, refusals, timeouts, aborts and losses leave nothing behind',
  count: 10_000,
  async play({ target, running, open, count, random }: Scene): Promise<Findings> {
    const atServers = await running.leftovers();
    const unopened = countResources();
    const locks = await open(0);
    const other = await open(1);
    const stage = new Stage(target, locks, other);
    // What is made once and kept (connections, scripts, code) is there after this.
    await stage.play(Math.ceil(count / 5), random.fork('warm'));
    const idle = countResources();
    const heaps = [await heap()];
    const started = performance.now();
    for (const half of [1, 2]) {
      await stage.play(count / 2, random.fork(`half ${half}`));
      heaps.push(await heap());
    }
    const seconds = (performance.now() - started) / 1000;
    const [start = 0, middle = 0, end = 0] = heaps;
    // A leak grows in both halves; what a client keeps ready comes and goes.
    const growth = Math.min(middle - start, end - middle);
    const afterwards = await countSettled(idle, SETTLE_WITHIN);
    await Promise.all([locks.close(), other.close()]);
    const closed = await countSettled(unopened, SETTLE_WITHIN);
    const left = await settled(() => running.leftovers(), atServers, SETTLE_WITHIN);
    return {
      figures: {
        ...stage.ended,
        'acquisitions/s': Math.round(count / seconds),
        'heap, KiB': heaps.map((bytes) => Math.round(bytes / 1024)).join(' → '),
      },
      faults: [
        ...stage.faults,
        ...above('the process, open', idle, afterwards),
        ...above('the process, closed', unopened, closed),
        ...above('the servers', atServers, left),
        ...(growth > NOISE
          ? [`the heap grew by ${Math.round(growth / 1024)} KiB in ${count / 2} acquisitions`]
          : []),
      ],
    };
  },
};

async function heap(): Promise<number> {
  for (let turn = 0; turn < 4; turn++) {
    await sleep(50);
    collectGarbage();
  }
  return process.memoryUsage().heapUsed;
}

type Way = 'taken' | 'refused' | 'timed out' | 'aborted' | 'waited' | 'expired' | 'forced';

const WAYS: readonly [Way, ...Way[]] = [
  ...(['taken', 'taken', 'taken', 'taken', 'refused', 'refused'] as const),
  ...(['timed out', 'timed out', 'aborted', 'aborted', 'waited', 'waited', 'expired', 'forced'] as const),
];

/** Two clients of one backend, and the ways in which an acquisition can end. */
class Stage {
  readonly ended: Record<string, number> = {};
  readonly faults: string[] = [];
  readonly #ttl: number;
  readonly #locks: Locks;
  readonly #other: Locks;
  readonly #shutdown = new AbortController();

  constructor({ ttl }: ChaosTarget, locks: Locks, other: Locks) {
    this.#ttl = ttl.min;
    this.#locks = locks;
    this.#other = other;
  }

  /** So many acquisitions. All of them follow one signal besides, as on a server that may be shut down. */
  async play(count: number, random: Random): Promise<void> {
    let left = count;
    const lane = async (index: number): Promise<void> => {
      const dice = random.fork(`lane ${index}`);
      while (left-- > 0) await this.#once(`lane ${index}`, dice);
    };
    await Promise.all(Array.from({ length: LANES }, (_, index) => lane(index)));
    const listeners = getEventListeners(this.#shutdown.signal, 'abort').length;
    if (listeners > 0) this.faults.push(`${listeners} listeners are left on the caller's signal`);
  }

  async #once(name: string, random: Random): Promise<void> {
    const way = random.pick(WAYS);
    try {
      await this.#end(way, name, random);
      this.ended[way] = (this.ended[way] ?? 0) + 1;
    } catch (error) {
      this.faults.push(`${way}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  async #end(way: Way, name: string, random: Random): Promise<void> {
    const signal = this.#shutdown.signal;
    const lock = this.#locks.lock(name);
    const theirs = this.#other.lock(name);
    const brief = { ttl: this.#ttl, renew: false, signal };
    if (way === 'expired') {
      const hold = await lock.acquire(brief);
      await new Promise((resolve) => {
        if (hold.signal.aborted) resolve(undefined);
        else hold.signal.addEventListener('abort', resolve, { once: true });
      });
      expect(await hold.release(), false, 'the release of what had expired');
      return;
    }
    const hold = await lock.acquire({ signal });
    if (way === 'forced') {
      await this.#other.forceRelease(name);
      expect(await hold.verify(), false, 'verify() of what was forced');
      return;
    }
    if (way === 'refused') expect(await theirs.tryAcquire({ signal }), null, 'a try');
    if (way === 'timed out') {
      await expectRejection(theirs.acquire({ wait: random.between(1, 30), signal }), 'LOCK_TIMEOUT');
    }
    if (way === 'aborted') {
      const leaving = new AbortController();
      const timer = setTimeout(() => leaving.abort(), random.between(0, 30));
      await expectRejection(theirs.acquire({ signal: leaving.signal }), 'ABORT_ERR');
      clearTimeout(timer);
    }
    const waiting = way === 'waited' ? theirs.acquire({ signal }) : undefined;
    expect(await hold.release(), true, 'the release');
    await (await waiting)?.release();
  }
}

function expect<T>(value: T, wanted: T, what: string): void {
  if (value !== wanted) throw new Error(`${what} gave ${String(value)}`);
}

async function expectRejection(promise: Promise<unknown>, code: string): Promise<void> {
  const outcome = await promise.then(
    () => 'a hold',
    (error: unknown) => error,
  );
  // A wait of some milliseconds may run out before the backend has answered once.
  const isBusy = code === 'LOCK_TIMEOUT' && isHoldfastError(outcome, 'BACKEND_UNAVAILABLE');
  if (
    isBusy ||
    isHoldfastError(outcome, code as never) ||
    (outcome as { name?: string }).name === 'AbortError'
  )
    return;
  throw new Error(`${code} was due, ${String(outcome)} came`);
}
