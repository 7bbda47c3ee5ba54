import { BackendError, type Claim, type Grant, systemClock } from '@holdfast/core';
import { describe, expect, it } from 'vitest';
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

describe('an attempt whose outcome is unknown', () => {
  const claim = claimOf('A', { queue: false });
  const lost = new BackendError('BACKEND_UNAVAILABLE', 'no answer');

  it('stays in doubt, though a later one was answered first', async () => {
    const { backend, log, answers } = await scene();
    const [first, second] = [backend.attempt(claim), backend.attempt(claim)];
    answers[1]?.({});
    await second;
    answers[0]?.(lost);
    await expect(first).rejects.toBe(lost);
    await backend.release(claim);
    expect(log).toEqual(['released late']);
    await backend.close();
  });

  it('stays in doubt, though a later one was granted: it may still reach the database', async () => {
    const { backend, log, answers } = await scene();
    const first = backend.attempt(claim);
    answers[0]?.(lost);
    await expect(first).rejects.toBe(lost);
    const second = backend.attempt(claim);
    answers[1]?.({ claim, fencingToken: 1n, ttl: claim.ttl });
    await second;
    await backend.release(claim);
    expect(log).toEqual(['released late']);
    await backend.close();
  });

  it('is forgotten with its claim, when that could not be given back', async () => {
    const { backend, log, answers } = await scene();
    const attempt = backend.attempt(claim);
    answers[0]?.(lost);
    await expect(attempt).rejects.toBe(lost);
    backend.letLapse(claim);
    await backend.release(claim);
    expect(log).toEqual(['A lapses', 'released']);
    await backend.close();
  });
});
