import { describe, expect, it } from 'vitest';
import { sleep } from './clock.js';
import type { LockHandle } from './handle.js';
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

  it('is none once the hold was given back: the holder has nothing any more, and takes its turn', async () => {
    const { clock, flaky, a, b } = await world();
    await a.lock('k').run(async (outer) => {
      await outer.release();
      const again = await a.lock('k').acquire(reentrant);
      expect(again.fencingToken).toBeGreaterThan(outer.fencingToken);
      expect(again.owner).not.toBe(outer.owner);
      await again.release();

      const theirs = await b.lock('k').acquire();
      expect(await a.lock('k').tryAcquire(reentrant)).toBeNull();
      const waiting = a.lock('k').run(async (fresh) => {
        // Inside of this one, it is re-entry again.
        const inner = await a.lock('k').acquire(reentrant);
        expect(inner.owner).toBe(fresh.owner);
        return inner.release();
      }, reentrant);
      await clock.idle();
      await theirs.release();
      expect(await waiting).toBe(true);
    }, reentrant);
    expect((await b.inspect('k')).held).toBe(false);
    // One for each turn that was taken, one refused, and the wait's second.
    expect(flaky.count('attempt')).toBe(5);
  });

  it('is none while the hold is being given back, nor when the outcome of that stayed unknown', async () => {
    const { clock, flaky, a } = await world();
    const work = a.lock('k').run(async (outer) => {
      flaky.next('release', ...Array.from({ length: 20 }, () => 'refuse' as const));
      const releasing = outcome(outer.release());
      const during = a.lock('k').acquire(reentrant);
      expect(await releasing).toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
      const after = a.lock('k').acquire(reentrant);
      const first = await during;
      expect(first.fencingToken).toBeGreaterThan(outer.fencingToken);
      await first.release();
      const second = await after;
      expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
      await second.release();
    }, reentrant);
    await clock.advance(60_000);
    await work;
  });

  it('is none into a hold that was serialized: it goes on elsewhere', async () => {
    const { clock, a, b } = await world();
    await a.lock('k').run(async (outer) => {
      const serialized = outer.serialize();
      expect(await a.lock('k').tryAcquire(reentrant)).toBeNull();
      const theirs = await b.adopt(serialized);
      const waiting = a.lock('k').acquire(reentrant);
      await clock.idle();
      await theirs.release();
      const ours = await waiting;
      expect(ours.fencingToken).toBeGreaterThan(outer.fencingToken);
      await ours.release();
    }, reentrant);
  });

  it('with a maxHold of its own ends the hold there, unless it has left by then', async () => {
    const { clock, a, b } = await world();
    const lost: string[] = [];
    const ended = outcome(
      a.lock('k').run(async (outer) => {
        outer.signal.addEventListener('abort', () => lost.push(outer.signal.reason.reason));
        const short = await a.lock('k').acquire({ reentrant: true, maxHold: 1000 });
        expect([short.remaining(), outer.remaining()]).toEqual([1000, 1000]);
        await short.release();
        expect(outer.remaining()).toBeGreaterThan(20_000);
        await sleep(clock, 5000);
        expect(outer.isHeld()).toBe(true);
        const stuck = await a.lock('k').acquire({ reentrant: true, maxHold: 2000 });
        await sleep(clock, 1999);
        expect([stuck.isHeld(), outer.isHeld()]).toEqual([true, true]);
        await sleep(clock, 1);
        expect([stuck.isHeld(), outer.isHeld()]).toEqual([false, false]);
      }, reentrant),
    );
    await clock.advance(30_000);
    expect(await ended).toMatchObject({ code: 'LOCK_LOST', reason: 'max-hold' });
    expect(lost).toEqual(['max-hold']);
    expect((await b.inspect('k')).held).toBe(false);
  });

  it('never lengthens a maxHold that is there, of the hold or of a call around it', async () => {
    const { clock, a } = await world();
    const work = async (outer: LockHandle) => {
      const middle = await a.lock('k').acquire({ reentrant: true, maxHold: 1000 });
      const inner = await a.lock('k').acquire({ reentrant: true, maxHold: '1h', ttl: '2h' });
      expect([inner.remaining(), outer.remaining()]).toEqual([1000, 1000]);
      await middle.release();
      expect([inner.remaining(), outer.remaining()]).toEqual([3000, 3000]);
      await outer.release();
      expect(inner.remaining()).toBe(3000);
      await inner.release();
    };
    const done = a.lock('k').run(work, { reentrant: true, maxHold: 3000 });
    await clock.idle();
    await done;
  });

  it('with a minHold of its own leaves the longest tail of all, counted from the grant', async () => {
    const { clock, a, b } = await world();
    const taken = async (outer: number, inner: number): Promise<number | undefined> => {
      const done = a.lock('k').run(
        async () => {
          await sleep(clock, 500);
          await (await a.lock('k').acquire({ reentrant: true, minHold: inner })).release();
        },
        { reentrant: true, minHold: outer },
      );
      await clock.advance(500);
      await done;
      const { expiresIn } = await b.inspect('k');
      await clock.advance(60_000);
      return expiresIn;
    };
    expect(await taken(2000, 10_000)).toBe(9500);
    expect(await taken(10_000, 2000)).toBe(9500);
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
