import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { connect } from './connect.js';

/** Takes a lock on the URL, tells its owner, and stays. */
const HOLDER = `
  const { parentPort, workerData } = require('node:worker_threads');
  import(workerData.core).then(async ({ connect }) => {
    const locks = await connect('memory:');
    const hold = await locks.lock('threads').acquire();
    const inside = await locks.lock('threads').tryAcquire();
    parentPort.on('message', () => locks.close().then(() => parentPort.close()));
    parentPort.postMessage({ held: hold.isHeld(), shared: inside !== null });
  });
`;

function holder(): Worker {
  const core = new URL('../dist/index.js', import.meta.url).href;
  return new Worker(HOLDER, { eval: true, workerData: { core } });
}

it('a worker thread is another process to memory:, and ends whether it closes its locks or is terminated', async () => {
  const [tidy, killed] = [holder(), holder()];
  const said = await Promise.all([tidy, killed].map((worker) => once(worker, 'message')));
  expect(said).toEqual([[{ held: true, shared: false }], [{ held: true, shared: false }]]);
  await using locks = await connect('memory:');
  expect(await locks.lock('threads').tryAcquire()).not.toBeNull();

  const exits = [once(tidy, 'exit'), once(killed, 'exit')];
  tidy.postMessage('close');
  await killed.terminate();
  expect(await Promise.all(exits)).toEqual([[0], [1]]);
});
