import { BackendError, type Claim, type Grant, systemClock } from '@holdfast/core';
import { expect, it } from 'vitest';
import { SqlBackend } from './backend.js';
import { settingsOf } from './options.js';
import type { LockStore, Refusal } from './store.js';
import { claimOf } from './test-kit.js';

/** A backend whose attempts are answered when told, and what reached its store. */
async function scene() {
  const log: string[] = [];
  const answers: ((answer: Grant | Refusal | Error) => void)[] = [];
  const store = {
    pushes: true,
    open: async () => ({ product: 'none', crossProcess: true }),
    attempt: () =>
      new Promise<Grant | Refusal>((resolve, reject) =>
        answers.push((answer) => (answer instanceof Error ? reject(answer) : resolve(answer))),
      ),
    release: async (_: unknown, { late }: { late: boolean }) => {
      log.push(late ? 'released late' : 'released');
      return { freed: true };
    },
    letLapse: ({ owner }: Claim) => log.push(`${owner} lapses`),
    close: async () => {},
  } as unknown as LockStore;
  const settings = settingsOf({ sweepEvery: 0 });
  const backend = new SqlBackend({ product: 'none', store, pacing: { shortest: 1, longest: 1 } }, settings);
  await backend.open({ clock: systemClock, commandTimeout: 1000, lost: () => {}, report: () => {} });
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  return { backend, log, answers, settled };
}

it('a release waits for every attempt of its claim, also where core has asked again meanwhile', async () => {
  const { backend, log, answers, settled } = await scene();
  const claim = claimOf('A', { queue: false });
  const attempts = [backend.attempt(claim), backend.attempt(claim)];
  const releasing = backend.release(claim);
  answers[0]?.({});
  await settled();
  expect(log).toEqual([]);
  answers[1]?.({});
  await releasing;
  expect(log).toEqual(['released']);
  await Promise.all(attempts);
  await backend.close();
});

it('an attempt whose outcome is unknown stays in doubt, though a later one was answered first', async () => {
  const { backend, log, answers } = await scene();
  const claim = claimOf('A', { queue: false });
  const [first, second] = [backend.attempt(claim), backend.attempt(claim)];
  answers[1]?.({});
  await second;
  answers[0]?.(new BackendError('BACKEND_UNAVAILABLE', 'no answer'));
  await expect(first).rejects.toThrow('no answer');
  await backend.release(claim);
  expect(log).toEqual(['released late']);
  await backend.close();
});

it('and though one that core sent after it was granted: the first may still reach the database', async () => {
  const { backend, log, answers } = await scene();
  const claim = claimOf('A', { queue: false });
  const first = backend.attempt(claim);
  answers[0]?.(new BackendError('BACKEND_UNAVAILABLE', 'no answer'));
  await expect(first).rejects.toThrow('no answer');
  const second = backend.attempt(claim);
  answers[1]?.({ claim, fencingToken: 1n, ttl: claim.ttl });
  await second;
  await backend.release(claim);
  expect(log).toEqual(['released late']);
  await backend.close();
});

it('a claim that could not be given back is forgotten, doubt and all', async () => {
  const { backend, log, answers } = await scene();
  const claim = claimOf('A', { queue: false });
  const attempt = backend.attempt(claim);
  answers[0]?.(new BackendError('BACKEND_UNAVAILABLE', 'no answer'));
  await expect(attempt).rejects.toThrow('no answer');
  backend.letLapse(claim);
  await backend.release(claim);
  expect(log).toEqual(['A lapses', 'released']);
  await backend.close();
});
