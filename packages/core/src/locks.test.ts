import { describe, expect, it } from 'vitest';
import { createLocks } from './locks.js';
import { memoryBackend } from './memory/backend.js';
import { FlakyBackend } from './testing/flaky-backend.js';
import { outcome, world } from './testing/world.js';

describe('close', () => {
  it('fails what waits, releases what is held, refuses what comes', async () => {
    const { clock, a, b } = await world();
    const theirs = await b.lock('theirs').acquire();
    const hold = await a.lock('mine').acquire();
    const waiting = outcome(a.lock('theirs').acquire());
    await clock.idle();
    await a.close();
    expect(await waiting).toMatchObject({ code: 'LOCKS_CLOSED' });
    expect((await b.inspect('theirs')).waiters).toHaveLength(0);
    expect((await b.inspect('mine')).held).toBe(false);
    expect(hold.isHeld()).toBe(false);
    expect(await hold.release()).toBe(false);
    await expect(a.lock('k').acquire()).rejects.toMatchObject({ code: 'LOCKS_CLOSED' });
    await expect(a.inspect('k')).rejects.toMatchObject({ code: 'LOCKS_CLOSED' });
    await expect(a.forceRelease('k')).rejects.toMatchObject({ code: 'LOCKS_CLOSED' });
    await expect(a.adopt('x')).rejects.toMatchObject({ code: 'LOCKS_CLOSED' });
    await theirs.release();
    await b.close();
    expect(clock.timers).toBe(0);
  });

  it('waits until the grant of an acquisition that it ended has been given back', async () => {
    const { clock, flaky, a, b } = await world();
    flaky.next('attempt', 'late');
    const acquiring = outcome(a.lock('k').acquire());
    await clock.idle();
    const closing = a.close();
    expect(await acquiring).toMatchObject({ code: 'LOCKS_CLOSED' });
    flaky.letThrough();
    await closing;
    expect((await b.inspect('k')).held).toBe(false);
  });

  it('ends in bounded time where the backend does not answer', async () => {
    const { clock, flaky, a } = await world();
    await a.lock('k').acquire();
    flaky.next('release', ...Array.from({ length: 30 }, () => 'hang' as const));
    const closing = a.close();
    await clock.advance(16_000);
    await closing;
    await clock.advance(30_000);
    expect(clock.timers).toBe(0);
  });

  it('takes one command timeout where releases stay unanswered, not one for them and one for what they leave', async () => {
    const { clock, flaky, a } = await world();
    await a.lock('k').acquire();
    flaky.next('release', ...Array.from({ length: 30 }, () => 'hang' as const));
    let closed = false;
    const closing = a.close().then(() => {
      closed = true;
    });
    await clock.advance(5500);
    expect(closed).toBe(true);
    await closing;
  });
});

describe('a backend object', () => {
  it('serves one Locks: the close of a second would take the connection of the first', async () => {
    const { backend } = new FlakyBackend(memoryBackend());
    const again = {
      code: 'INVALID_ARGUMENT',
      argument: 'backend',
      message: expect.stringContaining('a backend object of its own for each createLocks()'),
    };
    const first = createLocks(backend);
    await expect(createLocks(backend)).rejects.toMatchObject(again);
    const locks = await first;
    expect((await locks.lock('k').acquire()).isHeld()).toBe(true);
    await locks.close();
    await expect(createLocks(backend)).rejects.toMatchObject(again);
  });

  it('is not opened again after that has failed', async () => {
    const flaky = new FlakyBackend(memoryBackend());
    flaky.next('open', 'deny');
    await expect(createLocks(flaky.backend)).rejects.toMatchObject({ code: 'BACKEND_REFUSED' });
    await expect(createLocks(flaky.backend)).rejects.toMatchObject({ argument: 'backend' });
  });

  it('of memory serves any number, which meet: it has no connection', async () => {
    const backend = memoryBackend();
    const [a, b] = [await createLocks(backend), await createLocks(backend)];
    const hold = await a.lock('k').acquire();
    expect(await b.lock('k').tryAcquire()).toBeNull();
    const lost = new Promise((resolve) => hold.signal.addEventListener('abort', resolve));
    expect(await b.forceRelease('k')).toBe(true);
    await lost;
    expect(hold.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'forced' });
    await a.close();
    const next = await b.lock('k').acquire();
    await b.close();
    const c = await createLocks(backend);
    expect((await c.lock('k').acquire()).fencingToken).toBeGreaterThan(next.fencingToken);
    await c.close();
  });

  it('is still free when another argument was wrong', async () => {
    const backend = memoryBackend();
    await expect(createLocks(backend, { defaults: { ttl: -1 } })).rejects.toMatchObject({ argument: 'ttl' });
    await (await createLocks(backend)).close();
  });
});

describe('events', () => {
  it('are told to an asynchronous listener, whose rejection breaks nothing', async () => {
    const { a } = await world();
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    a.on('acquired', (async () => {
      throw new Error('listener');
    }) as () => void);
    await a.lock('k').acquire();
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });

  it('are asked for by a name that there is, with a function', async () => {
    const { a } = await world();
    expect(() => a.on('bogus' as 'lost', () => undefined)).toThrow(/event is "bogus"/);
    expect(() => a.on('lost', undefined as never)).toThrow(/listener is/);
    await expect(a.lock('k').run(undefined as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(createLocks(undefined as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  it('tell the story in order; a listener that throws breaks nothing', async () => {
    const { clock, a, b } = await world();
    const log: string[] = [];
    for (const event of ['waiting', 'acquired', 'renewed', 'lost', 'released'] as const) {
      a.on(event, ({ name }) => log.push(`${event} ${name}`));
      a.on(event, () => {
        throw new Error('listener');
      });
    }
    const theirs = await b.lock('k').acquire();
    const waiting = a.lock('k').acquire({ ttl: 3000 });
    await clock.idle();
    await theirs.release();
    const hold = await waiting;
    await clock.advance(1000);
    await hold.release();
    expect(log).toEqual(['waiting k', 'acquired k', 'renewed k', 'released k']);
  });
});

it('a question that is under way when it closes is answered all the same, if only by its deadline', async () => {
  const { clock, flaky, a } = await world();
  flaky.next('inspect', 'hang');
  const asked = outcome(a.inspect('k'));
  await clock.idle();
  const closed = a.close();
  await clock.advance(60_000);
  await closed;
  expect(await asked).toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
  expect(clock.timers).toBe(0);
});

it('a token that no hold can have is not asked for', async () => {
  const { a, flaky } = await world();
  await a.lock('k').acquire();
  for (const fencingToken of [-1n, 2n ** 63n, 10n ** 40n])
    expect(await a.forceRelease('k', { fencingToken })).toBe(false);
  expect(flaky.count('forceRelease')).toBe(0);
});

describe('fenceOffset', () => {
  it.each([-1n, 2n ** 62n + 1n, 2n ** 63n - 1n, 5])(
    'refuses %s: tokens would leave 64 bits',
    async (fenceOffset) => {
      await expect(world({ fenceOffset: fenceOffset as bigint })).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        argument: 'fenceOffset',
        message: expect.stringContaining('from 0n to 2n ** 62n'),
      });
    },
  );

  it('may be as much as 2^62: the tokens still fit 64 bits', async () => {
    const { a } = await world({ fenceOffset: 2n ** 62n });
    const { fencingToken } = await a.lock('k').acquire();
    expect(fencingToken).toBeGreaterThan(2n ** 62n);
    expect(fencingToken).toBeLessThan(2n ** 63n);
  });

  it('is added to every token that callers see, and taken off what they give', async () => {
    const { a, b } = await world({ fenceOffset: 10n ** 17n });
    const hold = await a.lock('k').acquire();
    const stored = (await b.inspect('k')).fencingToken ?? 0n;
    expect(hold.fencingToken).toBe(stored + 10n ** 17n);
    expect((await a.inspect('k')).fencingToken).toBe(hold.fencingToken);
    expect(await a.forceRelease('k', { fencingToken: stored })).toBe(false);
    expect(await a.forceRelease('k', { fencingToken: hold.fencingToken })).toBe(true);
  });
});

describe('list', () => {
  it.each([[7], ['\ud83d']])('refuses the prefix %j, and asks nothing', async (prefix) => {
    const { flaky, a } = await world();
    const first = a
      .list({ prefix: prefix as string })
      [Symbol.asyncIterator]()
      .next();
    await expect(first).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', argument: 'prefix' });
    expect(flaky.calls).not.toContain('list');
  });

  it('keeps the process alive while the backend has not answered', async () => {
    const { clock, flaky, a } = await world();
    let answer = (): void => undefined;
    flaky.backend.list = async function* () {
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      yield { name: 'k', held: true, waiters: [] };
    };
    const first = a.list()[Symbol.asyncIterator]().next();
    await clock.idle();
    expect(clock.timers).toBe(1);
    answer();
    expect((await first).value.name).toBe('k');
    expect(clock.timers).toBe(0);
  });
});

describe('diagnose', () => {
  it('tells what the backend says of its server; nothing where it says nothing', async () => {
    const silent = await createLocks(memoryBackend());
    expect(await silent.diagnose()).toEqual([]);
    const finding = { level: 'warning', id: 'x', finding: 'so it is' } as const;
    const talking = await createLocks(Object.assign(memoryBackend(), { diagnose: async () => [finding] }));
    expect(await talking.diagnose()).toEqual([finding]);
    await Promise.all([silent.close(), talking.close()]);
    await expect(silent.diagnose()).rejects.toMatchObject({ code: 'LOCKS_CLOSED' });
  });
});
