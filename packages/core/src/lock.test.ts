import { describe, expect, it } from 'vitest';
import { world } from './testing/world.js';

describe('run', () => {
  it('gives the value, and the lock back', async () => {
    const { a } = await world();
    expect(await a.lock('k').run(() => 42)).toBe(42);
    expect((await a.inspect('k')).held).toBe(false);
  });

  it("rejects with the work's own error, also when the release fails", async () => {
    const { flaky, a } = await world();
    flaky.next('release', 'deny', 'deny');
    const work = () => {
      throw new Error('E1');
    };
    await expect(a.lock('k').run(work)).rejects.toThrow('E1');
  });

  it('rejects with the loss, though the work returned', async () => {
    const { a, b } = await world();
    const work = async () => {
      await b.forceRelease('k');
      return 'done';
    };
    await expect(a.lock('k').run(work)).rejects.toMatchObject({ code: 'LOCK_LOST' });
  });

  it('rejects with a loss that shows only at the release', async () => {
    const { a, b, store } = await world();
    const work = async () => {
      store.entries.clear();
      await b.lock('k').acquire();
    };
    await expect(a.lock('k').run(work)).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'superseded' });
  });

  it('gives the value when only the outcome of the release stays unknown', async () => {
    const { clock, flaky, a } = await world();
    const errors: unknown[] = [];
    a.on('error', ({ error }) => errors.push(error));
    flaky.next('release', 'hang', 'hang', 'hang', 'hang');
    const running = a.lock('k').run(() => 'v');
    await clock.advance(6000);
    expect(await running).toBe('v');
    expect(errors).not.toEqual([]);
  });

  it('gives the value when the work released the lock itself', async () => {
    const { a } = await world();
    const work = async (hold: { release(): Promise<boolean> }) => hold.release();
    expect(await a.lock('k').run(work)).toBe(true);
  });
});
