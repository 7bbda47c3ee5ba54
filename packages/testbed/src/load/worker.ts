/** The program of a process under load. */
import { connect, type Locks } from '@holdfast/core';
import { countResources, countSettled } from '../chaos/resources.js';
import { monotonicNow } from '../history/recorder.js';
import { serveWorker } from '../processes/serve-worker.js';
import { above } from './scenario.js';

/** One waiter's turn, on the clock that all processes share, ms. */
export interface Turn {
  readonly asked: number;
  /** When the hold was known; the server had granted it before. */
  readonly from: number;
  /** When its release was asked for. */
  readonly until: number;
  readonly token: bigint;
}

/** ms after `close` */
const SETTLE_WITHIN = 5_000;

let locks: Locks | undefined;
let unopened: Readonly<Record<string, number>> = {};

function opened(): Locks {
  if (locks === undefined) throw new Error('open comes first');
  return locks;
}

async function wait(name: string): Promise<Turn> {
  const asked = monotonicNow();
  const hold = await opened().lock(name).acquire();
  const from = monotonicNow();
  const until = monotonicNow();
  await hold.release();
  return { asked, from, until, token: hold.fencingToken };
}

serveWorker({
  open: async ({ url }: { readonly url: string }) => {
    unopened = countResources();
    locks = await connect(url);
  },
  /** Answers with all turns when everybody has had his. */
  crowd: ({ name, waiters }: { readonly name: string; readonly waiters: number }) =>
    Promise.all(Array.from({ length: waiters }, () => wait(name))),
  /** Answers with what is left in the process. */
  close: async () => {
    await opened().close();
    return above(`process ${process.pid}`, unopened, await countSettled(unopened, SETTLE_WITHIN));
  },
});
