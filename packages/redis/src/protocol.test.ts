import { type Claim, type Contended, type Grant, type LockBackend, systemClock } from '@holdfast/core';
import { type RedisHandle, startRedis } from '@holdfast/testbed';
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { redisBackend } from './module.js';
import { admin, open, until } from './test-kit.js';

// The rules of the queue, each with the order of requests that breaks a protocol without it. They speak to the
// backend below core, which would not ask some of these questions.

let server: RedisHandle;
let client: Redis & Disposable;
let backends: LockBackend[];
let count = 0;

beforeAll(async () => {
  server = await startRedis({ own: true });
  client = admin(server.url);
});

afterAll(async () => {
  client.disconnect();
  await server.stop();
});

beforeEach(async () => {
  await client.flushall();
  backends = [];
});

afterEach(() => Promise.all(backends.map((backend) => backend.close())));

async function instance(): Promise<LockBackend> {
  const backend = redisBackend({ url: server.url });
  backends.push(backend);
  await backend.open({ clock: systemClock, commandTimeout: 2000, lost() {}, report() {} });
  return backend;
}

function claim(options: Partial<Claim> = {}): Claim {
  return { name: 'job', owner: `host:1:${count++}`, ttl: 10_000, queue: true, renew: true, ...options };
}

/** What makes a waiter be woken, where others are handed the lock. */
const WOKEN = { metadata: 'text' };

function granted(answer: Grant | Contended): Grant {
  if (!('fencingToken' in answer)) throw new Error(`contended: ${JSON.stringify(answer)}`);
  return answer;
}

function contended(answer: Grant | Contended): Contended {
  if ('fencingToken' in answer) throw new Error('granted');
  return answer;
}

/** Plays a waiter whose process died: its liveness has run out. */
const die = (owner: string) => async () => {
  const members = await client.zrange('holdfast:{job}:alive', '0', '-1');
  const member = members.find((candidate) => candidate.endsWith(` ${owner}`)) ?? '';
  await client.zadd('holdfast:{job}:alive', 'XX', '1', member);
};

describe('attempt', () => {
  it('is idempotent: the same owner has the same token', async () => {
    const a = await instance();
    const mine = claim();
    const first = granted(await a.attempt(mine));
    expect(granted(await a.attempt(mine)).fencingToken).toBe(first.fencingToken);
  });

  it('compares the whole owner, never a prefix', async () => {
    const a = await instance();
    granted(await a.attempt(claim({ owner: 'host:1:abc' })));
    contended(await a.attempt(claim({ owner: 'host:1:ab' })));
    contended(await a.attempt(claim({ owner: 'host:1:abcd' })));
    expect(await a.release(claim({ owner: 'host:1:ab' }))).toBe(false);
  });

  it('asked again never shortens, and does give the new time', async () => {
    const a = await instance();
    const mine = claim({ ttl: 60_000 });
    granted(await a.attempt(mine));
    granted(await a.attempt({ ...mine, ttl: 1000 }));
    expect(await client.pttl('holdfast:{job}')).toBeGreaterThan(50_000);
    granted(await a.attempt({ ...mine, ttl: 120_000 }));
    expect(await client.pttl('holdfast:{job}')).toBeGreaterThan(110_000);
  });

  it('does not overtake a live waiter, whether it queues or not', async () => {
    const [a, b, c] = [await instance(), await instance(), await instance()];
    const holder = claim();
    granted(await a.attempt(holder));
    const waiter = claim(WOKEN);
    expect(contended(await b.attempt(waiter)).position).toBe(1);
    expect(await a.release(holder)).toBe(true);

    contended(await c.attempt(claim({ queue: false })));
    expect(contended(await c.attempt(claim())).position).toBe(2);
    granted(await b.attempt(waiter));
  });

  it('keeps a waiter’s place when it asks again, and the order is that of arrival', async () => {
    const a = await instance();
    const holder = claim();
    granted(await a.attempt(holder));
    const waiters = [claim(), claim(), claim()];
    for (const waiter of waiters) contended(await a.attempt(waiter));
    for (const [index, waiter] of waiters.entries()) {
      expect(contended(await a.attempt(waiter)).position).toBe(index + 1);
    }
    const state = await a.inspect('job');
    expect(state.waiters.map((waiter) => waiter.owner)).toEqual(waiters.map((waiter) => waiter.owner));
  });

  it('prunes all dead waiters together', async () => {
    const [a, b] = [await instance(), await instance()];
    const holder = claim();
    granted(await a.attempt(holder));
    const dead = Array.from({ length: 20 }, () => claim());
    for (const waiter of dead) contended(await b.attempt(waiter));
    await b.close();
    await Promise.all(dead.map((waiter) => die(waiter.owner)()));
    await a.release(holder);

    granted(await a.attempt(claim({ queue: false })));
    expect(await client.exists('holdfast:{job}:queue', 'holdfast:{job}:alive')).toBe(0);
  });

  it('of a waiter that lost its place joins again at the end', async () => {
    const [a, b] = [await instance(), await instance()];
    granted(await a.attempt(claim()));
    const paused = claim();
    contended(await a.attempt(paused));
    const live = claim();
    contended(await b.attempt(live));
    await die(paused.owner)();

    expect(contended(await b.attempt(live)).position).toBe(1);
    expect(contended(await a.attempt(paused)).position).toBe(2);
  });

  it('wakes the head when it finds the lock free: the message may have been lost', async () => {
    const [a, b] = [await instance(), await instance()];
    granted(await a.attempt(claim({ ttl: 60_000 })));
    const head = claim();
    const answer = contended(await a.attempt(head));
    await client.del('holdfast:{job}');
    const turn = a.awaitTurn(head, answer, AbortSignal.timeout(20_000));

    contended(await b.attempt(claim()));

    await turn;
    granted(await a.attempt(head));
  });

  it('leaves nothing behind when it does not queue', async () => {
    const a = await instance();
    granted(await a.attempt(claim()));
    const keys = await client.keys('*');
    contended(await a.attempt(claim({ queue: false })));
    expect((await client.keys('*')).sort()).toEqual(keys.sort());
  });
});

describe('release', () => {
  it.each([
    ['has a text', WOKEN],
    ['has a ttl shorter than the liveness', { ttl: 4000 }],
  ])('wakes a head that %s, and leaves it at the head', async (_what, options) => {
    const [a, b] = [await instance(), await instance()];
    const holder = claim({ ttl: 60_000 });
    granted(await a.attempt(holder));
    const head = claim(options);
    const answer = contended(await b.attempt(head));
    const turn = b.awaitTurn(head, answer, AbortSignal.timeout(20_000));
    await a.release(holder);
    await turn;
    expect((await a.inspect('job')).waiters).toEqual([{ owner: head.owner, position: 1 }]);
  });

  it('of a wake-up that comes between attempt and awaitTurn loses nothing', async () => {
    const [a, b] = [await instance(), await instance()];
    const holder = claim({ ttl: 60_000 });
    granted(await a.attempt(holder));
    const head = claim();
    const answer = contended(await b.attempt(head));
    using listener = admin(server.url);
    await listener.psubscribe('holdfast:wake:*');
    const published = new Promise((resolve) => listener.on('pmessage', resolve));
    await a.release(holder);
    await published;
    // What reached one subscriber of this process is there for the other.
    await new Promise((resolve) => setImmediate(resolve));
    await b.awaitTurn(head, answer, AbortSignal.timeout(20_000));
    granted(await b.attempt(head));
  });

  it('of a waiter that was woken and gives up wakes the next', async () => {
    const [a, b, c] = [await instance(), await instance(), await instance()];
    const holder = claim({ ttl: 60_000 });
    granted(await a.attempt(holder));
    const [first, second] = [claim(WOKEN), claim(WOKEN)];
    contended(await b.attempt(first));
    const answer = contended(await c.attempt(second));
    await a.release(holder);
    const turn = c.awaitTurn(second, answer, AbortSignal.timeout(20_000));

    expect(await b.release(first)).toBe(false);

    await turn;
    granted(await c.attempt(second));
  });

  it('that never came through leaves a place that nobody keeps alive', async () => {
    const [a, b] = [await instance(), await instance()];
    const waiter = claim();
    granted(await a.attempt(claim()));
    contended(await b.attempt(waiter));
    b.letLapse?.(waiter);
    await until(async () => (await a.inspect('job')).waiters.length === 0);
  });

  it('frees nobody else’s lock, however late it comes', async () => {
    const a = await instance();
    const old = claim();
    granted(await a.attempt(old));
    expect(await a.release(old)).toBe(true);
    const present = granted(await a.attempt(claim()));
    expect(await a.release(old)).toBe(false);
    expect((await a.inspect('job')).fencingToken).toBe(present.fencingToken);
  });

  it('with a tail keeps the name taken without an owner, and ends by force', async () => {
    const a = await instance();
    const mine = claim();
    granted(await a.attempt(mine));
    expect(await a.release(mine, { keepFor: 5000.5 })).toBe(true);
    expect(await a.release(mine)).toBe(false);
    const state = await a.inspect('job');
    expect([state.held, state.owner]).toEqual([true, undefined]);
    expect(await client.pttl('holdfast:{job}')).toBeGreaterThan(1000);
    contended(await a.attempt(claim({ queue: false })));
    expect(await a.forceRelease('job')).toBe(true);
    granted(await a.attempt(claim()));
  });
});

describe('hand-over', () => {
  it('makes the head the owner for as long as it counts as alive, and its own attempt for its whole ttl', async () => {
    const [a, b] = [await instance(), await instance()];
    const holder = claim({ ttl: 60_000 });
    const { fencingToken } = granted(await a.attempt(holder));
    const heir = claim({ ttl: 60_000 });
    const answer = contended(await b.attempt(heir));
    const turn = b.awaitTurn(heir, answer, AbortSignal.timeout(20_000));
    expect(await a.release(holder)).toBe(true);
    const state = await a.inspect('job');
    expect([state.owner, state.waiters]).toEqual([heir.owner, []]);
    expect(state.fencingToken).toBeGreaterThan(fencingToken);
    expect(await client.pttl('holdfast:{job}')).toBeLessThanOrEqual(5000);
    await turn;
    expect(granted(await b.attempt(heir))).toEqual({
      claim: heir,
      fencingToken: state.fencingToken,
      ttl: 60_000,
    });
    expect(await client.pttl('holdfast:{job}')).toBeGreaterThan(50_000);
  });

  it('whose message was lost is found at the next sign of life', async () => {
    const [a, b] = [await instance(), await instance()];
    const holder = claim({ ttl: 60_000 });
    granted(await a.attempt(holder));
    const heir = claim({ ttl: 60_000 });
    const answer = contended(await b.attempt(heir));
    // As the releasing script does, without its message.
    const [member = ''] = await client.zrange('holdfast:{job}:queue', '0', '0');
    await client.zrem('holdfast:{job}:queue', member);
    await client.zrem('holdfast:{job}:alive', member);
    await client.set('holdfast:{job}', `${heir.owner}\n77\n1\n`, 'PX', 4000);
    await b.awaitTurn(heir, answer, AbortSignal.timeout(20_000));
    expect(granted(await b.attempt(heir)).fencingToken).toBe(77n);
    expect(await client.pttl('holdfast:{job}')).toBeGreaterThan(50_000);
  });

  it('is given back, and on, by an heir that gives up', async () => {
    const [a, b, c] = [await instance(), await instance(), await instance()];
    const holder = claim({ ttl: 60_000 });
    granted(await a.attempt(holder));
    const [first, second] = [claim(), claim()];
    contended(await b.attempt(first));
    contended(await c.attempt(second));
    await a.release(holder);
    expect(await b.release(first)).toBe(true);
    expect((await a.inspect('job')).owner).toBe(second.owner);
    expect(await a.release(holder)).toBe(false);
  });

  it('to a dead heir lapses with its liveness, and the next comes to its turn', async () => {
    const [a, b, c] = [await instance(), await instance(), await instance()];
    const holder = claim({ ttl: 60_000 });
    granted(await a.attempt(holder));
    contended(await b.attempt(claim({ ttl: 60_000 })));
    const next = claim({ ttl: 60_000 });
    let answer = contended(await c.attempt(next));
    await b.close();
    await a.release(holder);
    // Its turn may come more than once: the holder's time may have been prolonged.
    for (;;) {
      await c.awaitTurn(next, answer, AbortSignal.timeout(20_000));
      const again = await c.attempt(next);
      if ('fencingToken' in again) break;
      answer = again;
    }
    expect((await c.inspect('job')).owner).toBe(next.owner);
  });

  it('of an earlier place is not believed: its message came late, and the lock has lapsed', async () => {
    const [a, b] = [await instance(), await instance()];
    const holder = claim({ ttl: 60_000 });
    granted(await a.attempt(holder));
    const heir = claim({ ttl: 60_000 });
    const answer = contended(await b.attempt(heir));
    const [member = ''] = await client.zrange('holdfast:{job}:queue', '0', '0');
    await client.publish(member.slice(1, member.lastIndexOf(' ')), `wake 0 ${heir.owner}`);
    await b.awaitTurn(heir, answer, AbortSignal.timeout(20_000));
    contended(await b.attempt(heir));
    expect((await a.inspect('job')).owner).toBe(holder.owner);
  });

  it('that has lapsed before the heir took it puts the heir back into the queue, and frees nobody else’s lock', async () => {
    const [a, b, c] = [await instance(), await instance(), await instance()];
    const holder = claim({ ttl: 60_000 });
    granted(await a.attempt(holder));
    const heir = claim({ ttl: 60_000 });
    const answer = contended(await b.attempt(heir));
    const turn = b.awaitTurn(heir, answer, AbortSignal.timeout(20_000));
    await a.release(holder);
    await turn;
    await client.pexpire('holdfast:{job}', 1);
    await until(async () => (await client.exists('holdfast:{job}')) === 0);
    const other = granted(await c.attempt(claim({ ttl: 60_000, queue: false })));
    expect(contended(await b.attempt(heir)).position).toBe(1);
    expect(await b.release(heir)).toBe(false);
    expect((await c.inspect('job')).owner).toBe(other.claim.owner);
  });

  it('comes after a tail, not in the midst of it', async () => {
    const [a, b] = [await instance(), await instance()];
    const holder = claim({ ttl: 60_000 });
    granted(await a.attempt(holder));
    const next = claim({ ttl: 60_000 });
    const answer = contended(await b.attempt(next));
    expect(await a.release(holder, { keepFor: 1500 })).toBe(true);
    const state = await a.inspect('job');
    expect([state.held, state.owner, state.waiters.length]).toEqual([true, undefined, 1]);
    await b.awaitTurn(next, answer, AbortSignal.timeout(20_000));
    expect(await client.exists('holdfast:{job}')).toBe(0);
    granted(await b.attempt(next));
  });

  it('is for the next when the one that it was for is closed', async () => {
    await using a = await open({ url: server.url });
    const b = await open({ url: server.url });
    await using c = await open({ url: server.url });
    const hold = await a.lock('job').acquire({ ttl: 60_000 });
    const closed = b
      .lock('job')
      .acquire()
      .catch((error: { code: string }) => error.code);
    await until(async () => (await a.inspect('job')).waiters.length === 1);
    const waiting = c.lock('job').acquire();
    await until(async () => (await a.inspect('job')).waiters.length === 2);
    await Promise.all([hold.release(), b.close()]);
    await closed;
    const { owner, waiters } = await a.inspect('job');
    const next = await waiting;
    expect([owner, waiters]).toEqual([next.owner, []]);
    expect(next.fencingToken).toBeGreaterThan(hold.fencingToken);
  });

  it('ends with maxHold like every hold', async () => {
    await using a = await open({ url: server.url });
    await using b = await open({ url: server.url });
    const hold = await a.lock('job').acquire({ ttl: 60_000 });
    const waiting = b.lock('job').acquire({ ttl: 60_000, maxHold: 300 });
    await until(async () => (await a.inspect('job')).waiters.length === 1);
    await hold.release();
    const heir = await waiting;
    await until(() => heir.signal.aborted);
    expect(heir.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'max-hold' });
    await until(async () => !(await a.inspect('job')).held);
  });

  it('is good for the whole ttl from the first moment, also for work that lets nothing else run', async () => {
    await using a = await open({ url: server.url });
    await using b = await open({ url: server.url });
    const hold = await a.lock('job').acquire({ ttl: 60_000 });
    const waiting = b.lock('job').run(
      (heir) => {
        const end = performance.now() + 6000;
        while (performance.now() < end);
        return [heir.isHeld(), heir.signal.aborted, Math.round(heir.remaining() / 10_000)];
      },
      { ttl: 60_000 },
    );
    await until(async () => (await a.inspect('job')).waiters.length === 1);
    await hold.release();
    expect(await waiting).toEqual([true, false, 5]);
  });

  it('that a failover or FLUSHALL has lost is told to the heir at its first renewal, and tokens go on rising', async () => {
    await using a = await open({ url: server.url });
    await using b = await open({ url: server.url });
    const hold = await a.lock('job').acquire({ ttl: 60_000 });
    const waiting = b.lock('job').acquire({ ttl: 6000 });
    await until(async () => (await a.inspect('job')).waiters.length === 1);
    b.on('acquired', () => client.flushall());
    await hold.release();
    const heir = await waiting;
    await until(() => heir.signal.aborted);
    expect(heir.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'superseded' });
    const next = await a.lock('job').acquire();
    expect(next.fencingToken).toBeGreaterThan(heir.fencingToken);
  });

  it('works for a server that has just forgotten its scripts', async () => {
    const [a, b] = [await instance(), await instance()];
    const holder = claim({ ttl: 60_000 });
    granted(await a.attempt(holder));
    const heir = claim({ ttl: 60_000 });
    const answer = contended(await b.attempt(heir));
    const turn = b.awaitTurn(heir, answer, AbortSignal.timeout(20_000));
    await client.script('FLUSH');
    expect(await a.release(holder)).toBe(true);
    await turn;
    expect(granted(await b.attempt(heir)).claim.owner).toBe(heir.owner);
  });

  it('finds waiters again whose queue was flushed with the lock', async () => {
    await using a = await open({ url: server.url });
    await using b = await open({ url: server.url });
    await a.lock('job').acquire({ ttl: 60_000, renew: false });
    const waits = Array.from({ length: 3 }, () => b.lock('job').run((heir) => heir.fencingToken));
    await until(async () => (await a.inspect('job')).waiters.length === 3);
    await client.flushall();
    const tokens = await Promise.all(waits);
    expect(new Set(tokens).size).toBe(3);
  });

  it('asks for it where replicas must confirm: a message confirms nothing', async () => {
    const [a] = [await instance()];
    const holder = claim({ ttl: 60_000 });
    granted(await a.attempt(holder));
    const cautious = redisBackend({ url: server.url, minReplicas: 1, minReplicasTimeout: 100 });
    backends.push(cautious);
    await cautious.open({ clock: systemClock, commandTimeout: 2000, lost() {}, report() {} });
    await expect(cautious.attempt(claim({ ttl: 60_000 }))).rejects.toMatchObject({ transient: true });
    const [member = ''] = await client.zrange('holdfast:{job}:queue', '0', '0');
    expect(member.slice(0, 1)).toBe('-');
  });
});

describe('renewal', () => {
  it('never creates: a lock that has gone is lost, one that another holds too', async () => {
    const a = await instance();
    const grant = granted(await a.attempt(claim()));
    await client.del('holdfast:{job}');
    expect(await a.renew([grant])).toEqual([{ renewed: false, reason: 'superseded' }]);
    expect(await client.exists('holdfast:{job}')).toBe(0);
    const other = granted(await a.attempt(claim()));
    expect(await a.extend(grant, 5000)).toMatchObject({ renewed: false });
    expect((await a.inspect('job')).fencingToken).toBe(other.fencingToken);
  });

  it('never shortens: a late one must not cut what a later one was promised', async () => {
    const a = await instance();
    const grant = granted(await a.attempt(claim({ ttl: 60_000 })));
    expect(await a.extend(grant, 1000)).toEqual({ renewed: true, ttl: 1000 });
    expect(await client.pttl('holdfast:{job}')).toBeGreaterThan(50_000);
  });

  it('checks the token too', async () => {
    const a = await instance();
    const grant = granted(await a.attempt(claim()));
    const wrong = { ...grant, fencingToken: grant.fencingToken - 1n };
    expect(await a.renew([wrong, grant])).toMatchObject([{ renewed: false }, { renewed: true }]);
  });

  it('says that it was forced', async () => {
    const a = await instance();
    const grant = granted(await a.attempt(claim()));
    expect(await a.forceRelease('job', grant.fencingToken + 1n)).toBe(false);
    expect(await a.forceRelease('job', grant.fencingToken)).toBe(true);
    expect(await a.renew([grant])).toEqual([{ renewed: false, reason: 'forced' }]);
  });
});

describe('adoption', () => {
  it('goes to one of two, keeps the token and the text, and may be asked for again', async () => {
    const a = await instance();
    const grant = granted(await a.attempt(claim({ metadata: 'line\nline' })));
    const mine = await a.adopt(grant, 'host:2:new');
    expect(mine?.fencingToken).toBe(grant.fencingToken);
    expect(await a.adopt(grant, 'host:3:other')).toBeUndefined();
    expect((await a.adopt(grant, 'host:2:new'))?.fencingToken).toBe(grant.fencingToken);
    expect(await a.inspect('job')).toMatchObject({ owner: 'host:2:new', metadata: 'line\nline' });
  });
});

describe('tokens', () => {
  it('fencing-token-lifetime: rise across release, expiry, force, FLUSHALL and a lost lock key', async () => {
    const a = await instance();
    const tokens: bigint[] = [];
    const take = async (ttl = 10_000) => {
      const grant = granted(await a.attempt(claim({ ttl })));
      tokens.push(grant.fencingToken);
      return grant;
    };
    await a.release((await take()).claim);
    await take(10);
    await until(async () => (await client.exists('holdfast:{job}')) === 0);
    await take();
    await a.forceRelease('job');
    await take();
    await client.flushall();
    await take();
    await client.del('holdfast:{job}');
    await take();
    expect(tokens).toEqual([...tokens].sort((x, y) => (x < y ? -1 : 1)));
    expect(new Set(tokens).size).toBe(tokens.length);
    expect(tokens[0]).toBeGreaterThan(0n);
  });

  it('rise while the server’s clock is behind the counter, which then lives until the clock has caught up', async () => {
    const a = await instance();
    const ahead = BigInt(Date.now() + 40 * 24 * 3_600_000) * 1000n;
    await client.set('holdfast:{job}:fence', String(ahead));
    const grant = granted(await a.attempt(claim()));
    expect(grant.fencingToken).toBe(ahead + 1n);
    expect(await client.pttl('holdfast:{job}:fence')).toBeGreaterThan(40 * 24 * 3_600_000);
  });

  it('need no counter for ever: it goes a day after the last grant, when the clock is past it', async () => {
    const a = await instance();
    granted(await a.attempt(claim()));
    const left = await client.pttl('holdfast:{job}:fence');
    expect([left > 23 * 3_600_000, left <= 24 * 3_600_000]).toEqual([true, true]);
  });
});

describe('the mark on the counter', () => {
  const marked = async () => (await client.get('holdfast:{job}:fence'))?.endsWith('*');

  it('is there while somebody waits, and gone with the last grant that nobody waits behind', async () => {
    const a = await instance();
    const holder = claim();
    granted(await a.attempt(holder));
    expect(await marked()).toBe(false);
    const [first, second] = [claim(), claim()];
    contended(await a.attempt(first));
    expect(await marked()).toBe(true);
    contended(await a.attempt(second));
    await a.release(holder);
    granted(await a.attempt(first));
    expect(await marked()).toBe(true);
    await a.release(first);
    granted(await a.attempt(second));
    expect(await marked()).toBe(false);
  });

  it('comes back with the next sign of life where the counter has lapsed, and the token does not fall', async () => {
    const [a, b] = [await instance(), await instance()];
    const holder = claim({ ttl: 60_000 });
    const { fencingToken } = granted(await a.attempt(holder));
    const waiter = claim();
    const answer = contended(await b.attempt(waiter));
    await client.del('holdfast:{job}:fence');
    await until(async () => (await marked()) === true);
    expect(BigInt((await client.get('holdfast:{job}:fence'))?.slice(0, -1) ?? 0)).toBe(fencingToken);
    const turn = b.awaitTurn(waiter, answer, AbortSignal.timeout(20_000));
    await a.release(holder);
    await turn;
    expect(granted(await b.attempt(waiter)).fencingToken).toBeGreaterThan(fencingToken);
  });
});

describe('a tombstone', () => {
  it('refuses its owner alone, and lapses', async () => {
    const a = await instance();
    await client.set('holdfast:{job}:fence', '7*');
    await client.zadd('holdfast:{job}:alive', String(Date.now() + 60_000), '! host:1:gone');
    await expect(a.attempt(claim({ owner: 'host:1:gone' }))).rejects.toMatchObject({ transient: true });
    const other = claim();
    granted(await a.attempt(other));
    expect((await a.inspect('job')).waiters).toEqual([]);
    await a.release(other);
    await client.zadd('holdfast:{job}:alive', 'XX', '1', '! host:1:gone');
    granted(await a.attempt(claim()));
    expect(await client.exists('holdfast:{job}:alive')).toBe(0);
  });
});

describe('the queue’s keys', () => {
  it('go with the last live waiter, also where nobody asks for the name again', async () => {
    const a = await instance();
    granted(await a.attempt(claim()));
    contended(await a.attempt(claim()));
    for (const key of ['holdfast:{job}:queue', 'holdfast:{job}:alive']) {
      const left = await client.pttl(key);
      expect([left > 0, left <= 5000]).toEqual([true, true]);
    }
  });

  it('setnx-without-ttl: none of our keys lives for ever', async () => {
    const [a, b] = [await instance(), await instance()];
    const grant = granted(await a.attempt(claim()));
    contended(await b.attempt(claim()));
    await a.renew([grant]);
    await a.adopt(grant, 'host:9:adopter');
    await a.forceRelease('job');
    const keys = await client.keys('*');
    expect(keys.length).toBeGreaterThan(2);
    expect(await Promise.all(keys.map((key) => client.pttl(key)))).not.toContain(-1);
  });
});
