import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { fakeClock } from './clock.js';
import { startWorker } from './worker.js';

const WORKER = fileURLToPath(new URL('../../fixtures/worker.mjs', import.meta.url));
const HOUR = 3_600_000;

test('a worker answers calls, bigints included, and emits events', async () => {
  await using worker = await startWorker(WORKER);
  expect(await worker.call('echo', { token: 2n ** 60n })).toEqual({ token: 2n ** 60n });
  const said = worker.event('said');
  await worker.call('emit', 'hello');
  expect(await said).toBe('hello');
  await expect(worker.call('fail')).rejects.toMatchObject({
    name: 'TypeError',
    message: 'it failed',
    code: 'E_FAILED',
  });
  await expect(worker.call('nothing')).rejects.toThrow('no command nothing');
});

test('a worker that stops in order says goodbye', async () => {
  await using worker = await startWorker(WORKER);
  expect(await worker.stop()).toBe(0);
  expect(worker.output).toBe('goodbye\n');
});

test('kill −9 settles what waits for the worker, a paused one too', async () => {
  await using worker = await startWorker(WORKER);
  await worker.pause();
  const hung = expect(worker.call('hang')).rejects.toThrow('SIGKILL');
  const event = expect(worker.event('never')).rejects.toThrow('never');
  await worker.kill();
  await Promise.all([hung, event]);
  expect(await worker.exited).toEqual({ code: null, signal: 'SIGKILL' });
});

test('a paused worker does nothing until it is resumed', async () => {
  await using worker = await startWorker(WORKER);
  await worker.pause();
  let answered = false;
  const answer = worker.call('ticks').then(() => {
    answered = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(answered).toBe(false);
  await worker.resume();
  await answer;
});

test('a blocked worker runs no timer until the block ends', async () => {
  await using worker = await startWorker(WORKER);
  const before = await worker.call<number>('ticks');
  const begin = performance.now();
  await worker.block(500);
  const after = await worker.call<number>('ticks');
  expect(performance.now() - begin).toBeGreaterThan(400);
  expect(after - before).toBeLessThan(25);
});

test('a worker has a wall clock of its own, which can be set, and the common monotonic one', async () => {
  using clock = fakeClock(HOUR);
  await using worker = await startWorker(WORKER, { clock });
  const ahead = async () => (await worker.call<number>('now')) - Date.now();
  expect(await ahead()).toBeGreaterThan(HOUR - 60_000);
  clock.set(-HOUR);
  expect(await ahead()).toBeLessThan(60_000 - HOUR);
  const monotonic = await worker.call<bigint>('monotonic');
  expect(Number(process.hrtime.bigint() - monotonic) / 1e6).toBeLessThan(60_000);
});
