import { describe, expect, it } from 'vitest';
import type { Claim } from '../backend.js';
import { ManualClock } from '../testing/manual-clock.js';
import { memoryBackend } from './backend.js';
import { GRACE, MemoryStore } from './store.js';

async function queueOf(...owners: string[]) {
  const clock = new ManualClock();
  const backend = memoryBackend({ store: new MemoryStore(clock) });
  await backend.open();
  const claim = (owner: string): Claim => ({ name: 'k', owner, ttl: 60_000, queue: true, renew: true });
  for (const owner of owners) await backend.attempt(claim(owner));
  return { clock, backend, claim };
}

describe('waiters on memory', () => {
  it('keep their places while their process is too busy to let them sleep', async () => {
    const { clock, backend, claim } = await queueOf('holder', 'first', 'second');
    clock.freeze(2 * GRACE);
    expect(await backend.attempt(claim('third'))).toMatchObject({ position: 3 });
    await backend.release(claim('holder'));
    expect(await backend.attempt(claim('third'))).not.toHaveProperty('fencingToken');
    expect(await backend.attempt(claim('first'))).toHaveProperty('fencingToken');
    await backend.release(claim('first'));
    expect(await backend.attempt(claim('second'))).toHaveProperty('fencingToken');
  });

  it('lose them when the process comes round and they show no sign of life', async () => {
    const { clock, backend, claim } = await queueOf('holder', 'dead', 'living');
    const turn = backend.awaitTurn(claim('living'), {}, new AbortController().signal);
    await clock.advance(2 * GRACE);
    await backend.release(claim('holder'));
    await clock.advance(1);
    await turn;
    expect(await backend.attempt(claim('living'))).toHaveProperty('fencingToken');
  });
});
