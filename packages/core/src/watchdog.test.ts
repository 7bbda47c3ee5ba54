import { describe, expect, it } from 'vitest';
import type { LockBackend } from './backend.js';
import { createLocks } from './locks.js';
import { memoryBackend } from './memory/backend.js';
import { ManualClock } from './testing/manual-clock.js';
import { world } from './testing/world.js';

/** A backend whose grants live as long as its session, whatever their ttl. */
function onSession(inner: LockBackend): LockBackend {
  return new Proxy(inner, {
    get: (target, property) => {
      if (property === 'open') {
        return async (...args: Parameters<LockBackend['open']>) => ({
          ...(await target.open(...args)),
          expiry: 'session',
        });
      }
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

describe('the watchdog', () => {
  it('renews at a third of the ttl, less a random part of up to a tenth', async () => {
    const { clock, a } = await world();
    const times: number[] = [];
    const start = clock.now();
    a.on('renewed', () => times.push(clock.now() - start));
    await a.lock('k').acquire({ ttl: 30_000 });
    await clock.advance(8900);
    expect(times).toEqual([]);
    await clock.advance(1200);
    expect(times).toHaveLength(1);
  });

  it('sends renewals that are due together in one batch', async () => {
    const { clock, flaky, a } = await world();
    await Promise.all(
      Array.from({ length: 500 }, (_, index) => a.lock(`k${index}`).acquire({ ttl: 30_000 })),
    );
    await clock.advance(12_000);
    expect(flaky.count('renew')).toBeGreaterThan(0);
    expect(flaky.count('renew')).toBeLessThanOrEqual(5);
  });

  it('takes an error for unknown: tries again until validity ends, and keeps the lock', async () => {
    const { clock, flaky, a } = await world();
    const hold = await a.lock('k').acquire({ ttl: 9000 });
    flaky.next('renew', 'refuse', 'lose-answer', 'refuse');
    await clock.advance(8000);
    expect(hold.isHeld()).toBe(true);
    expect(hold.signal.aborted).toBe(false);
  });

  it('goes on after a renewal that is never answered', async () => {
    const { clock, flaky, a } = await world();
    const hold = await a.lock('k').acquire({ ttl: 9000 });
    flaky.next('renew', 'hang');
    await clock.advance(20_000);
    expect(hold.isHeld()).toBe(true);
  });

  it('signals the loss before anyone else can hold, when nothing is answered any more', async () => {
    const { clock, flaky, a, b } = await world();
    const log: string[] = [];
    const hold = await a.lock('k').acquire({ ttl: 3000 });
    hold.signal.addEventListener('abort', () => log.push(`lost ${hold.signal.reason.reason}`));
    flaky.next('renew', ...Array.from({ length: 60 }, () => 'refuse' as const));
    flaky.next('release', ...Array.from({ length: 60 }, () => 'refuse' as const));
    const next = b
      .lock('k')
      .acquire()
      .then(() => log.push('granted to b'));
    await clock.advance(4000);
    await next;
    expect(log).toEqual(['lost expired', 'granted to b']);
    expect(hold.isHeld()).toBe(false);
    expect(await hold.release()).toBe(false);
  });

  it('does not bring a lost lock back, though a late answer says "renewed"', async () => {
    const { clock, flaky, a, b } = await world();
    const hold = await a.lock('k').acquire({ ttl: 3000 });
    flaky.next('renew', 'late', 'hang', 'hang', 'hang', 'hang');
    flaky.next('release', 'hang');
    await clock.advance(2900);
    clock.freeze(200);
    flaky.letThrough();
    await clock.advance(100);
    expect(hold.isHeld()).toBe(false);
    expect(hold.signal.aborted).toBe(true);
    await clock.advance(10_000);
    expect((await b.inspect('k')).held).toBe(false);
  });

  it('is not held any more after the process stood still, before any timer could run', async () => {
    const { clock, a } = await world();
    const hold = await a.lock('k').acquire({ ttl: 500 });
    clock.freeze(1500);
    expect(hold.isHeld()).toBe(false);
    expect(hold.remaining()).toBe(0);
    await expect(hold.extend()).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
  });

  it('is not held any more after the machine was suspended', async () => {
    const { clock, a } = await world();
    const hold = await a.lock('k').acquire({ ttl: 30_000 });
    clock.suspend(29_000);
    expect(hold.isHeld()).toBe(true);
    clock.suspend(1000);
    expect(hold.isHeld()).toBe(false);
  });

  it('signals the loss soon after the machine wakes up, though nobody asks', async () => {
    const { clock, a } = await world();
    const hold = await a.lock('k').acquire({ ttl: 30_000 });
    const { signal } = hold;
    clock.suspend(60_000);
    await clock.advance(1001);
    expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
  });

  it('makes the loss known to the first who looks', async () => {
    const { clock, a } = await world();
    const hold = await a.lock('k').acquire({ ttl: 30_000 });
    clock.suspend(60_000);
    expect(hold.isHeld()).toBe(false);
    expect(hold.signal.aborted).toBe(true);
  });

  it('stops at maxHold, aborts the signal and gives the lock back', async () => {
    const { clock, a, b } = await world();
    const hold = await a.lock('k').acquire({ ttl: 500, maxHold: 2000 });
    const next = b.lock('k').acquire();
    await clock.advance(2001);
    expect(hold.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'max-hold' });
    expect((await next).isHeld()).toBe(true);
  });

  it('stops at release: no renewal, no timer, no lost event', async () => {
    const { clock, flaky, a } = await world();
    const lost: unknown[] = [];
    a.on('lost', (event) => lost.push(event));
    for (let round = 0; round < 50; round++) await (await a.lock('k').acquire({ ttl: 300 })).release();
    await clock.advance(1000);
    expect(flaky.count('renew')).toBe(0);
    expect(clock.timers).toBe(0);
    expect(lost).toEqual([]);
  });

  it('keeps a hold without renewal valid on a session backend until its ttl, and calls that no renewal', async () => {
    const clock = new ManualClock();
    const a = await createLocks(onSession(memoryBackend()), { clock });
    const log: string[] = [];
    a.on('renewed', () => log.push('renewed'));
    const hold = await a.lock('k').acquire({ ttl: 9000, renew: false });
    hold.signal.addEventListener('abort', () => log.push(`lost ${hold.signal.reason.reason}`));
    await clock.advance(8900);
    expect(hold.isHeld()).toBe(true);
    await clock.advance(200);
    expect(hold.isHeld()).toBe(false);
    expect(log).toEqual(['lost expired']);
    await a.close();
  });
});
