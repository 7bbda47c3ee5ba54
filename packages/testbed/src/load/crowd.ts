import { startWorker, type Worker } from '../processes/worker.js';
import { above, type Findings, type Scenario, type Scene, settled } from './scenario.js';
import type { Turn } from './worker.js';

const PROCESSES = 10;
const NAME = 'crowd';
/** ms */
const SETTLE_WITHIN = 15_000;

/** Everybody wants the same thing, from several processes. */
export const crowd: Scenario = {
  id: 'crowd',
  description: `waiters on one name, over ${PROCESSES} processes, are served one after the other`,
  count: 1_000,
  async play({ target, running, count }: Scene): Promise<Findings> {
    const before = await running.leftovers();
    const processes = target.crossProcess ? PROCESSES : 1;
    const workers: Worker[] = [];
    try {
      // One after another: their start is not what is measured.
      for (let index = 0; index < processes; index++) {
        const worker = await startWorker(new URL('./worker.js', import.meta.url));
        workers.push(worker);
        await worker.call('open', { url: running.url(index) });
      }
      const each = Math.ceil(count / processes);
      const started = performance.now();
      const turns = await Promise.all(
        workers.map((worker) => worker.call<Turn[]>('crowd', { name: NAME, waiters: each })),
      );
      const seconds = (performance.now() - started) / 1000;
      const left = await Promise.all(workers.map((worker) => worker.call<string[]>('close')));
      const after = await settled(() => running.leftovers(), before, SETTLE_WITHIN);
      const served = turns.flat();
      return {
        figures: {
          served: served.length,
          processes,
          'grants/s': Math.round(served.length / seconds),
          'longest wait, ms': Math.round(Math.max(...served.map(({ from, asked }) => from - asked))),
        },
        faults: [
          ...(served.length === each * processes
            ? []
            : [`${each * processes - served.length} were not served`]),
          ...overlaps(served),
          ...left.flat(),
          ...above('the servers', before, after),
        ],
      };
    } finally {
      await Promise.all(workers.map((worker) => worker.kill()));
    }
  },
};

/** Turns follow one another, and so do their tokens. */
function overlaps(turns: readonly Turn[]): string[] {
  const inOrder = [...turns].sort((a, b) => a.from - b.from);
  return inOrder.flatMap((turn, index) => {
    const previous = inOrder[index - 1];
    if (previous === undefined) return [];
    return [
      ...(turn.from < previous.until ? [`token ${turn.token} was held beside token ${previous.token}`] : []),
      ...(turn.token <= previous.token ? [`token ${turn.token} came after token ${previous.token}`] : []),
    ];
  });
}
