import { readFile, writeFile } from 'node:fs/promises';
import { type LockHandle, type Locks, sleep, systemClock } from '@holdfast/core';
import { type ConnectionFlags, openLocks } from '../connection.js';
import { CONNECTION, type Report, type Task } from './protocol.js';

/** How long counting takes between reading and writing: long enough for others to come between. */
const WORK = 3;

async function main(): Promise<void> {
  // As in the program: it would open Node's debugger.
  process.on('SIGUSR1', () => undefined);
  const locks = await openLocks(JSON.parse(process.env[CONNECTION] ?? '{}') as ConnectionFlags);
  process.on('message', (task) => {
    count(locks, task as Task).then(
      () => tell({ kind: 'done' }),
      (error: unknown) => tell({ kind: 'failed', message: (error as Error).message }),
    );
  });
  process.once('disconnect', () => void locks.close());
  tell({ kind: 'ready' });
}

async function count(locks: Locks, { file, times, startAt, lock, stopIn }: Task): Promise<void> {
  await sleep(systemClock, startAt - systemClock.wall(), undefined, { keepAlive: true });
  for (let turn = 1; turn <= times; turn++) {
    if (lock === undefined) {
      await increment(file);
      continue;
    }
    await locks.lock(lock.name, { ttl: lock.ttl }).run(async (hold: LockHandle) => {
      tell({ kind: 'granted', at: systemClock.wall(), token: String(hold.fencingToken) });
      if (turn === stopIn) await stop();
      await increment(file);
      tell({ kind: 'counted', at: systemClock.wall() });
    });
  }
}

/** Reads, thinks, writes: two that do so at once lose an update. */
async function increment(file: string): Promise<void> {
  const value = Number(await readFile(file, 'utf8'));
  await sleep(systemClock, WORK, undefined, { keepAlive: true });
  await writeFile(file, String(value + 1));
}

async function stop(): Promise<never> {
  tell({ kind: 'stopped' });
  return new Promise(() => undefined);
}

function tell(report: Report): void {
  process.send?.(report);
}

main().catch((error: unknown) => {
  tell({ kind: 'failed', message: (error as Error).message });
  process.disconnect?.();
});
