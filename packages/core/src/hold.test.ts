import { describe, expect, it } from 'vitest';
import type { Claim } from './backend.js';
import { outcome, world } from './testing/world.js';

describe('extend', () => {
  it('sets the ttl up and down, and the watchdog follows', async () => {
    const { clock, a } = await world();
    const hold = await a.lock('k').acquire({ ttl: 10_000 });
    await hold.extend('60s');
    expect(hold.ttl).toBe(60_000);
    expect(hold.remaining()).toBeGreaterThan(59_000);
    await hold.extend(1000);
    expect(hold.remaining()).toBeLessThanOrEqual(1000);
    await clock.advance(5000);
    expect(hold.isHeld()).toBe(true);
  });

  it('is not undone by the answer to a renewal that was sent before', async () => {
    const { clock, flaky, a } = await world();
    const hold = await a.lock('k').acquire({ ttl: 30_000 });
    flaky.next('renew', 'late');
    await clock.advance(10_000);
    await hold.extend(1000);
    flaky.letThrough();
    await clock.idle();
    expect(hold.ttl).toBe(1000);
    expect(hold.remaining()).toBeLessThanOrEqual(1000);
  });

  it.each([[0], [-1], [Number.NaN], ['x']])('refuses %s and changes nothing', async (ttl) => {
    const { flaky, a } = await world();
    const hold = await a.lock('k').acquire({ ttl: 10_000 });
    await expect(hold.extend(ttl as number)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(flaky.count('extend')).toBe(0);
    expect(hold.ttl).toBe(10_000);
  });

  it('rejects with the loss once the backend says not yours', async () => {
    const { a, b } = await world();
    const hold = await a.lock('k').acquire();
    await b.forceRelease('k');
    await expect(hold.extend()).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'forced' });
  });
});

describe('release', () => {
  it('says true once, false afterwards', async () => {
    const { a } = await world();
    const hold = await a.lock('k').acquire();
    expect(await hold.release()).toBe(true);
    expect(await hold.release()).toBe(false);
  });

  it('is given up, and the backend told so, once the server must have let it lapse', async () => {
    const { clock, flaky, a } = await world();
    const lapsed: string[] = [];
    Object.assign(flaky.backend, { letLapse: ({ name }: Claim) => lapsed.push(name) });
    const hold = await a.lock('k').acquire({ ttl: 10_000 });
    flaky.next('release', ...Array.from({ length: 100 }, () => 'refuse' as const));
    const releasing = outcome(hold.release());
    await clock.advance(10_000);
    expect(await releasing).toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
    expect(lapsed).toEqual([]);
    await clock.advance(10_000);
    expect(lapsed).toEqual(['k']);
    const asked = flaky.count('release');
    await clock.advance(60_000);
    expect(flaky.count('release')).toBe(asked);
  });

  it('says true when only the answer was lost', async () => {
    const { clock, flaky, a } = await world();
    const hold = await a.lock('k').acquire();
    flaky.next('release', 'lose-answer');
    const releasing = hold.release();
    await clock.advance(200);
    expect(await releasing).toBe(true);
  });

  it('says false when it was broken by force while the release was under way', async () => {
    const { clock, flaky, a, b } = await world();
    const hold = await a.lock('k').acquire();
    const reasons: string[] = [];
    a.on('lost', ({ error }) => reasons.push(error.reason));
    flaky.next('release', 'refuse');
    const releasing = hold.release();
    expect(await b.forceRelease('k')).toBe(true);
    await clock.advance(200);
    expect([await releasing, reasons]).toEqual([false, ['forced']]);
  });

  it('rejects while the outcome is unknown, and may be tried again', async () => {
    const { clock, flaky, a, b } = await world();
    const hold = await a.lock('k').acquire({ ttl: 60_000 });
    flaky.next('release', 'deny', 'hang');
    expect(await outcome(hold.release())).toMatchObject({ code: 'BACKEND_REFUSED' });
    expect(hold.isHeld()).toBe(false);
    expect(await hold.release()).toBe(true);
    await clock.idle();
    expect((await b.inspect('k')).held).toBe(false);
  });

  it('goes on in the background after it was given up', async () => {
    const { clock, flaky, a, b } = await world();
    const hold = await a.lock('k').acquire({ ttl: 60_000 });
    flaky.next('release', 'deny', 'refuse', 'refuse');
    await outcome(hold.release());
    await clock.advance(1000);
    expect((await b.inspect('k')).held).toBe(false);
  });

  it('of a lock that somebody else took is false, and theirs stays', async () => {
    const { clock, a, b } = await world();
    const hold = await a.lock('k').acquire({ ttl: 500, renew: false });
    clock.freeze(600);
    const theirs = await b.lock('k').acquire();
    expect(await hold.release()).toBe(false);
    await clock.idle();
    expect((await b.inspect('k')).owner).toBe(theirs.owner);
  });

  it('never rejects when disposed of: a failure becomes an event', async () => {
    const { flaky, a } = await world();
    const errors: unknown[] = [];
    a.on('error', ({ error }) => errors.push(error));
    const hold = await a.lock('k').acquire();
    flaky.next('release', 'deny', 'deny');
    await hold[Symbol.asyncDispose]();
    expect(errors[0]).toMatchObject({ code: 'BACKEND_REFUSED' });
  });
});

describe('minHold', () => {
  it('leaves a tail: held without owner, granted to nobody until it ends', async () => {
    const { clock, a, b } = await world();
    const hold = await a.lock('k').acquire({ minHold: 5000 });
    await clock.advance(1000);
    expect(await hold.release()).toBe(true);
    expect(await b.inspect('k')).toMatchObject({ held: true });
    expect((await b.inspect('k')).owner).toBeUndefined();
    const next = b.lock('k').acquire();
    await clock.advance(3900);
    expect((await b.inspect('k')).waiters).toHaveLength(1);
    await clock.advance(200);
    expect((await next).isHeld()).toBe(true);
  });

  it('ends when forced', async () => {
    const { a, b } = await world();
    await (await a.lock('k').acquire({ minHold: '1h' })).release();
    expect(await b.forceRelease('k')).toBe(true);
    expect(await b.lock('k').tryAcquire()).not.toBeNull();
  });
});
