import { describe, expect, it } from 'vitest';
import { BackendError } from './errors.js';
import { createLocks } from './locks.js';
import { memoryBackend } from './memory/backend.js';
import { MemoryStore } from './memory/store.js';
import { ManualClock } from './testing/manual-clock.js';
import { outcome, world } from './testing/world.js';

describe('an acquisition whose answer is lost', () => {
  it('is learnt by asking again with the same owner: one acquisition, one token', async () => {
    const { clock, flaky, a, b } = await world();
    flaky.next('attempt', 'lose-answer');
    const acquiring = a.lock('k').acquire({ wait: '5s' });
    await clock.advance(200);
    const hold = await acquiring;
    expect(flaky.count('attempt')).toBe(2);
    expect((await b.inspect('k')).owner).toBe(hold.owner);
    expect((await b.inspect('k')).fencingToken).toBe(hold.fencingToken);
    expect(await b.lock('k').tryAcquire()).toBeNull();
  });

  it('counts validity from the request that was answered, not from the first', async () => {
    const { clock, flaky, a } = await world();
    flaky.next('attempt', 'hang');
    const acquiring = a.lock('k').acquire({ ttl: 10_000, renew: false });
    await clock.advance(2100);
    const hold = await acquiring;
    expect(hold.remaining()).toBeGreaterThan(9700);
    expect(hold.remaining()).toBeLessThanOrEqual(10_000 - 102);
  });

  it('leaves nothing when the caller has gone before the grant lands', async () => {
    const { clock, flaky, a, b } = await world();
    flaky.next('attempt', 'late');
    const acquiring = outcome(a.lock('k').acquire({ wait: 500 }));
    await clock.advance(500);
    expect(await acquiring).toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
    flaky.letThrough();
    await clock.advance(10);
    expect((await b.inspect('k')).held).toBe(false);
  });

  it('leaves nothing when the caller goes in the very tick of the grant', async () => {
    const { clock, a, b } = await world();
    const gone = new AbortController();
    a.on('acquired', () => gone.abort());
    expect(await outcome(a.lock('k').acquire({ signal: gone.signal }))).toMatchObject({ name: 'AbortError' });
    await clock.advance(10);
    expect((await b.inspect('k')).held).toBe(false);
  });

  it('leaves nothing when a try was refused after an attempt that may still arrive', async () => {
    const { clock, flaky, a, b } = await world();
    const held = await b.lock('k').acquire();
    flaky.next('attempt', 'refuse');
    const trying = a.lock('k').tryAcquire();
    await clock.advance(200);
    expect(await trying).toBeNull();
    await clock.advance(10);
    expect(flaky.count('release')).toBe(1);
    await held.release();
  });

  it('never becomes a handle without validity', async () => {
    const { clock, flaky, a, b } = await world({ commandTimeout: '100s' });
    flaky.next('attempt', 'late');
    const acquiring = outcome(a.lock('k').acquire({ ttl: 300, wait: 3000 }));
    await clock.advance(100);
    const slow = b.lock('slow').acquire();
    clock.freeze(400);
    flaky.letThrough();
    await clock.advance(300);
    const hold = await acquiring;
    expect(hold).toMatchObject({ name: 'k' });
    expect((hold as { remaining(): number }).remaining()).toBeGreaterThan(0);
    expect(flaky.count('attempt')).toBe(2);
    await (await slow).release();
  });
});

describe('contended, unavailable and unknown', () => {
  it('are told apart at the deadline by the last answer', async () => {
    const { clock, flaky, a, b } = await world();
    const held = await b.lock('k').acquire();
    const contended = outcome(a.lock('k').acquire({ wait: 300 }));
    await clock.advance(300);
    expect(await contended).toMatchObject({
      code: 'LOCK_TIMEOUT',
      lockName: 'k',
      holder: { owner: held.owner },
    });
    flaky.next('attempt', 'refuse', 'refuse', 'refuse', 'refuse', 'refuse');
    const unavailable = outcome(a.lock('other').acquire({ wait: 300 }));
    await clock.advance(300);
    expect(await unavailable).toMatchObject({ code: 'BACKEND_UNAVAILABLE', lockName: 'other' });
  });

  it('a permanent refusal fails at once, without a second request', async () => {
    const { flaky, a } = await world();
    flaky.next('attempt', 'deny');
    await expect(a.lock('k').acquire()).rejects.toMatchObject({ code: 'BACKEND_REFUSED' });
    expect(flaky.count('attempt')).toBe(1);
  });

  it('an infinite wait is bounded where the backend never answers', async () => {
    const { clock, flaky, a } = await world({ unavailableAfter: '10s' });
    flaky.next('attempt', ...Array.from({ length: 40 }, () => 'hang' as const));
    const acquiring = outcome(a.lock('k').acquire());
    await clock.advance(10_500);
    expect(await acquiring).toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
  });

  it('a try whose request is never answered ends within the command timeout', async () => {
    const { clock, flaky, a } = await world();
    flaky.next('attempt', 'hang', 'hang', 'hang', 'hang');
    const trying = outcome(a.lock('k').tryAcquire());
    await clock.advance(5000);
    expect(await trying).toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
  });
});

describe('waiting', () => {
  it('rejects with the reason of the signal, and leaves no place in the queue', async () => {
    const { clock, a, b } = await world();
    const held = await b.lock('k').acquire();
    const giveUp = new AbortController();
    const waiting = a.lock('k').acquire({ signal: giveUp.signal });
    await clock.idle();
    expect((await b.inspect('k')).waiters).toHaveLength(1);
    const reason = new Error('closing shop');
    giveUp.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await clock.idle();
    expect((await b.inspect('k')).waiters).toHaveLength(0);
    await held.release();
  });

  it('shares one abort listener among a thousand waiters of one signal', async () => {
    const { clock, a, b } = await world();
    const held = await b.lock('k').acquire();
    const giveUp = new AbortController();
    let listeners = 0;
    const add = giveUp.signal.addEventListener.bind(giveUp.signal);
    giveUp.signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners++;
      add(...args);
    };
    const waiting = Array.from({ length: 1000 }, () =>
      outcome(a.lock('k').acquire({ signal: giveUp.signal })),
    );
    await clock.idle();
    expect(listeners).toBe(1);
    giveUp.abort();
    await Promise.all(waiting);
    await held.release();
  });

  it('sends nothing for a signal that has aborted already', async () => {
    const { flaky, a } = await world();
    await expect(a.lock('k').acquire({ signal: AbortSignal.abort('no') })).rejects.toBe('no');
    expect(flaky.count('attempt')).toBe(0);
  });

  it('takes 40 days without a timer that overflows', async () => {
    const { clock, a, b } = await world();
    const days = 24 * 3_600_000;
    const held = await b.lock('k').acquire({ ttl: 50 * days, renew: false });
    const waiting = outcome(a.lock('k').acquire({ wait: 40 * days }));
    await clock.advance(39 * days);
    expect((await b.inspect('k')).waiters).toHaveLength(1);
    await clock.advance(1 * days);
    expect(await waiting).toMatchObject({ code: 'LOCK_TIMEOUT' });
    await held.release();
  });
});

describe('a backend whose turns come at once', () => {
  /** Refuses every attempt in a microtask, and each time says at once that it is worth another. */
  async function hasty(clock: ManualClock) {
    const inner = memoryBackend({ store: new MemoryStore(clock) });
    let attempts = 0;
    const backend = new Proxy(inner, {
      get: (target, property) => {
        if (property === 'awaitTurn') return async () => undefined;
        const value: unknown = Reflect.get(target, property, target);
        if (typeof value !== 'function') return value;
        if (property !== 'attempt') return value.bind(target);
        return async () => {
          // A loop that never yields could not be ended by any timer of this test either.
          if (++attempts > 10_000)
            throw new BackendError('BACKEND_REFUSED', 'asked 10,000 times without a pause');
          return { position: 1 };
        };
      },
    });
    return { locks: await createLocks(backend, { clock }), attempts: () => attempts };
  }

  it('leaves the process time for everything else, its own deadline included', async () => {
    const clock = new ManualClock();
    const { locks, attempts } = await hasty(clock);
    const waiting = outcome(locks.lock('k').acquire({ wait: 1000 }));
    await clock.idle();
    expect(attempts()).toBeLessThan(5);
    await clock.advance(1000);
    expect(await waiting).toMatchObject({ code: 'LOCK_TIMEOUT' });
    expect(attempts()).toBeLessThan(100);
  });

  it('can be left by the signal at any time', async () => {
    const clock = new ManualClock();
    const { locks } = await hasty(clock);
    const giveUp = new AbortController();
    const waiting = locks.lock('k').acquire({ signal: giveUp.signal });
    await clock.idle();
    const reason = new Error('closing shop');
    giveUp.abort(reason);
    await expect(waiting).rejects.toBe(reason);
  });
});
