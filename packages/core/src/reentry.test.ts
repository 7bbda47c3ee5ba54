import { describe, expect, it } from 'vitest';
import type { AcquireOptions } from './lock.js';
import { outcome, world } from './testing/world.js';

describe('re-entry', () => {
  const reentrant: AcquireOptions = { reentrant: true };

  it('returns at once with the same owner and token, and the last release frees', async () => {
    const { flaky, a, b } = await world();
    await a.lock('k').run(async (outer) => {
      const inner = await a.lock('k').acquire(reentrant);
      expect([inner.owner, inner.fencingToken]).toEqual([outer.owner, outer.fencingToken]);
      expect(await inner.release()).toBe(true);
      expect(outer.isHeld()).toBe(true);
      expect(inner.isHeld()).toBe(false);
      expect((await b.inspect('k')).held).toBe(true);
    }, reentrant);
    expect(flaky.count('attempt')).toBe(1);
    expect((await b.inspect('k')).held).toBe(false);
  });

  it('outlives the callback while an inner handle is held', async () => {
    const { a, b } = await world();
    const inner = await a.lock('k').run(() => a.lock('k').acquire(reentrant), reentrant);
    expect((await b.inspect('k')).held).toBe(true);
    expect(await inner.release()).toBe(true);
    expect((await b.inspect('k')).held).toBe(false);
  });

  it('makes siblings meet inside, and work that was not awaited wait its turn', async () => {
    const { clock, a, b } = await world();
    const log: string[] = [];
    let late: Promise<unknown> = Promise.resolve();
    let leave = (): void => undefined;
    const left = new Promise<void>((resolve) => {
      leave = resolve;
    });
    await a.lock('k').run(async () => {
      await Promise.all([1, 2, 3].map((n) => a.lock('k').run(() => log.push(`inside ${n}`), reentrant)));
      late = left.then(() => a.lock('k').run(() => log.push('late'), reentrant));
    }, reentrant);
    const theirs = await b.lock('k').acquire();
    leave();
    await clock.idle();
    expect(log).toEqual(['inside 1', 'inside 2', 'inside 3']);
    await theirs.release();
    await late;
    expect(log.at(-1)).toBe('late');
  });

  it('needs the option on both calls', async () => {
    const { a } = await world();
    expect(await a.lock('k').run(() => a.lock('k').tryAcquire(reentrant))).toBeNull();
    expect(await a.lock('k').run(() => a.lock('k').tryAcquire(), reentrant)).toBeNull();
  });

  it('lengthens the ttl but never shortens it', async () => {
    const { a } = await world();
    await a.lock('k').run(
      async (outer) => {
        await (await a.lock('k').acquire({ reentrant: true, ttl: 1000 })).release();
        expect(outer.ttl).toBe(10_000);
        await (await a.lock('k').acquire({ reentrant: true, ttl: 20_000 })).release();
        expect(outer.ttl).toBe(20_000);
      },
      { reentrant: true, ttl: 10_000 },
    );
  });

  it('into a lost lock fails with the loss', async () => {
    const { a, b } = await world();
    const work = async () => {
      await b.forceRelease('k');
      await expect(a.lock('k').acquire(reentrant)).rejects.toMatchObject({ code: 'LOCK_LOST' });
      throw new Error('seen');
    };
    await expect(a.lock('k').run(work, reentrant)).rejects.toThrow('seen');
  });

  it('warns once of a wait without limit for its own lock', async () => {
    const { a } = await world();
    const warnings: string[] = [];
    const listen = (warning: Error): void => void warnings.push(warning.message);
    process.on('warning', listen);
    const giveUp = new AbortController();
    await a.lock('k').run(async () => {
      const waits = [1, 2].map(() => outcome(a.lock('k').acquire({ signal: giveUp.signal })));
      await new Promise((resolve) => setImmediate(resolve));
      giveUp.abort({ code: 'GAVE_UP' });
      await Promise.all(waits);
    });
    process.off('warning', listen);
    expect(warnings.filter((text) => text.includes('inside its own run()'))).toHaveLength(1);
  });
});
