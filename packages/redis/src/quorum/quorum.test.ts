import { createLocks, type LockHandle, type Locks, type LocksOptions } from '@holdfast/core';
import { type FaultProxy, type ServerHandle, startProxy, startRedisQuorum } from '@holdfast/testbed';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { redisQuorumBackend } from '../module.js';
import { quorumAcquire, quorumForce, quorumRenew } from '../scripts.generated.js';
import { admin, pause, timed, until } from '../test-kit.js';
import type { RedisQuorumOptions } from './options.js';

// Three or five servers, each behind a proxy of its own.

/** No server of these tests forgets anything, unless a test says so. */
const REMEMBERS = { restartGrace: 0 } as const;

class World {
  readonly servers: ServerHandle;
  readonly clients: readonly (Redis & Disposable)[];
  proxies: readonly FaultProxy[] = [];
  #opened: Locks[] = [];

  constructor(servers: ServerHandle) {
    this.servers = servers;
    this.clients = servers.nodes.map(({ address }) => admin(`redis://${address}`));
  }

  async begin(): Promise<void> {
    await Promise.all(this.clients.map((client) => client.flushall()));
    this.proxies = await Promise.all(this.servers.nodes.map((target) => startProxy({ target })));
  }

  async end(): Promise<void> {
    for (const proxy of this.proxies) await proxy.heal();
    await Promise.all(this.#opened.map((locks) => locks.close()));
    this.#opened = [];
    await Promise.all(this.proxies.map((proxy) => proxy.stop()));
  }

  async stop(): Promise<void> {
    for (const client of this.clients) client.disconnect();
    await this.servers.stop();
  }

  /** Locks that reach the servers through the proxies. */
  open(backend: Partial<RedisQuorumOptions> = {}, options: LocksOptions = {}): Promise<Locks> {
    const url = `redis+quorum://${this.proxies.map(({ address }) => address).join()}`;
    return this.#open({ url, ...REMEMBERS, ...backend }, options);
  }

  /** Locks that no proxy can disturb. */
  direct(backend: Partial<RedisQuorumOptions> = {}): Promise<Locks> {
    return this.#open({ url: this.servers.url, ...REMEMBERS, ...backend }, {});
  }

  async #open(backend: RedisQuorumOptions, options: LocksOptions): Promise<Locks> {
    const locks = await createLocks(redisQuorumBackend(backend), options);
    this.#opened.push(locks);
    return locks;
  }

  /** The servers, by index, that have this key. */
  async having(key: string): Promise<number[]> {
    const found = await Promise.all(this.clients.map((client) => client.exists(key)));
    return found.flatMap((exists, index) => (exists === 1 ? [index] : []));
  }
}

/** The proxies at these places. */
function at(proxies: readonly FaultProxy[], ...places: number[]): FaultProxy[] {
  return proxies.filter((_, index) => places.includes(index));
}

async function cutOff(proxy: FaultProxy | undefined): Promise<void> {
  await proxy?.refuse();
  proxy?.reset();
}

describe('three servers', () => {
  let world: World;

  beforeAll(async () => {
    world = new World(await startRedisQuorum({ servers: 3 }));
  });
  afterAll(() => world.stop());
  beforeEach(() => world.begin());
  afterEach(() => world.end());

  it('wait-negative-many-holders: a negative wait is refused, and without limit there is one holder at a time', async () => {
    const many = await Promise.all(Array.from({ length: 10 }, () => world.direct()));
    let inside = 0;
    let most = 0;
    const tokens: bigint[] = [];
    const rounds = many.map((locks) =>
      locks.lock('k').run(
        async (hold) => {
          most = Math.max(most, ++inside);
          tokens.push(hold.fencingToken);
          await pause(5);
          inside--;
        },
        { ttl: 10_000, wait: Infinity },
      ),
    );
    const refused = many.map((locks) => timed(locks.lock('k').acquire({ wait: -1, ttl: 10_000 })));
    for (const { error } of await Promise.all(refused)) {
      expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' });
    }
    await Promise.all(rounds);
    expect(most).toBe(1);
    expect(tokens).toEqual([...tokens].sort((x, y) => (x < y ? -1 : 1)));
    expect(new Set(tokens).size).toBe(10);
  });

  it('quorum-slow-validity: a majority that took longer than the ttl is none, and leaves nothing', async () => {
    const locks = await world.open();
    const slow = at(world.proxies, 0, 1).map((proxy) => proxy.delay({ up: 900 }));
    const { error, value } = await timed(locks.lock('slow').acquire({ ttl: 800, wait: 3000 }));
    expect(value).toBeUndefined();
    expect(error).toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
    for (const delay of slow) delay.heal();
    await until(async () => (await world.having('holdfast:{slow}')).length === 0);
    const after = await locks.lock('slow').acquire({ ttl: 30_000 });
    expect(after.remaining()).toBeGreaterThan(0);
  });

  it('quorum-decay-restart: servers that restarted empty are given the lock back, one after the other', async () => {
    const locks = await world.open();
    const hold = await locks.lock('decay').acquire({ ttl: 3000 });
    await until(async () => (await world.having('holdfast:{decay}')).length === 3);
    for (const [index, node] of world.servers.nodes.slice(0, 2).entries()) {
      await world.clients[index]?.flushall();
      await node.restart();
      await until(async () => (await world.having('holdfast:{decay}')).includes(index));
    }
    // Without repair, the holder would have one vote of three by now.
    const renewed = new Promise((resolve) => locks.on('renewed', resolve));
    await renewed;
    expect(hold.isHeld()).toBe(true);
    expect(await (await world.direct()).lock('decay').tryAcquire()).toBeNull();
    expect(await hold.release()).toBe(true);
  });

  it('a server that restarted keeps out for the grace: what it may have voted has lapsed by then', async () => {
    const [a, b] = [
      await world.open({ maxTtl: 60_000, restartGrace: 0 }),
      await world.open({ maxTtl: 60_000, restartGrace: 60_000 }),
    ];
    // All three have just started, so that none of them may vote.
    const { error } = await timed(b.lock('young').acquire({ wait: 500 }));
    expect(error).toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
    expect(String((error as Error).message)).toContain('restartGrace');
    expect((await a.lock('young').acquire({ wait: 10_000 })).isHeld()).toBe(true);
  });

  it('a server that was emptied while it ran keeps out as well: its vote may be what a hold rests on', async () => {
    const locks = await world.open({ maxTtl: 1000, restartGrace: 1000 });
    const other = await world.direct({ maxTtl: 1000, restartGrace: 1000 });
    // A bare majority, of which one server is emptied.
    await world.clients[2]?.set('holdfast:{flushed}', 'host:9:b#1\n1\n1\n', 'PX', 60_000);
    const hold = await locks.lock('flushed').acquire({ ttl: 1000, renew: false, wait: 15_000 });
    await world.clients[0]?.flushall();
    await world.clients[2]?.del('holdfast:{flushed}');
    let next: LockHandle | null = null;
    await until(async () => {
      next = await other
        .lock('flushed')
        .tryAcquire()
        .catch(() => null);
      return next !== null;
    });
    expect(hold.isHeld()).toBe(false);
    expect(next).toMatchObject({ name: 'flushed' });
    await until(() => hold.signal.aborted);
  });

  it('with one server away nothing is missed', async () => {
    const locks = await world.open();
    const other = await world.direct();
    await cutOff(world.proxies[2]);
    const hold = await locks.lock('two').acquire({ ttl: 2000, wait: 5000 });
    expect(await other.lock('two').tryAcquire()).toBeNull();
    await new Promise((resolve) => locks.on('renewed', resolve));
    expect(hold.isHeld()).toBe(true);
    expect(await hold.release()).toBe(true);
    await world.proxies[2]?.heal();
    await until(async () => (await world.having('holdfast:{two}')).length === 0);
  });

  describe('contended, unavailable and unknown are three things:', () => {
    it('a lock that another holds is a wait, and its holder is named', async () => {
      const [a, b] = [await world.open(), await world.open()];
      const hold = await a.lock('held').acquire();
      const { error } = await timed(b.lock('held').acquire({ wait: 1000 }));
      expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', holder: { owner: hold.owner } });
      expect(await b.lock('held').tryAcquire()).toBeNull();
    });

    it.each([
      ['refuses connections', cutOff],
      ['says nothing', async (proxy: FaultProxy) => void proxy.blackHole()],
      ['answers nothing', async (proxy: FaultProxy) => void proxy.blackHole('down')],
    ])(
      'a majority that %s is BackendError by the deadline, and nothing stays when it is back',
      async (_how, strike) => {
        const locks = await world.open();
        await locks.lock('warm').run(() => undefined);
        for (const proxy of at(world.proxies, 0, 1)) await strike(proxy);
        const { error, ms } = await timed(locks.lock('away').acquire({ ttl: 60_000, wait: 1500 }));
        expect(error).toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
        expect(ms).toBeLessThan(10_000);
        for (const proxy of world.proxies) await proxy.heal();
        await until(async () => (await world.having('holdfast:{away}')).length === 0);
        const other = await world.direct();
        const next = await other.lock('away').acquire({ wait: 15_000 });
        await next.release();
        await until(async () => (await world.having('holdfast:{away}')).length === 0);
      },
    );

    it('a hold is told lost in time when a majority goes, and given back when it returns', async () => {
      const locks = await world.open();
      const hold = await locks.lock('left').acquire({ ttl: 2000 });
      for (const proxy of at(world.proxies, 1, 2)) proxy.blackHole();
      await new Promise((resolve) => hold.signal.addEventListener('abort', resolve));
      expect(hold.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
      for (const proxy of world.proxies) await proxy.heal();
      await until(async () => (await world.having('holdfast:{left}')).length === 0);
    });

    it('votes whose answers were lost are asked for again: one acquisition, one grant', async () => {
      const locks = await world.open();
      const other = await world.direct();
      await locks.lock('warm').run(() => undefined);
      const faults = at(world.proxies, 0, 1).map((proxy) => proxy.dropAnswerTo(quorumAcquire.sha));
      const hold = await locks.lock('unknown').acquire({ ttl: 30_000, wait: 15_000 });
      expect(faults.map(({ hits }) => hits)).toEqual([1, 1]);
      expect(await other.lock('unknown').tryAcquire()).toBeNull();
      expect(await hold.release()).toBe(true);
      await until(async () => (await world.having('holdfast:{unknown}')).length === 0);
    });

    it('a release by force whose answers were lost is one, and breaks nobody else', async () => {
      const [locks, other] = [await world.open(), await world.direct()];
      // The script is known to the servers, so that the request is known by its hash.
      await other.lock('warm').acquire();
      expect(await other.forceRelease('warm')).toBe(true);
      const held = await other.lock('forced').acquire();
      const queued = new Promise((resolve) => other.on('waiting', resolve));
      const next = other.lock('forced').acquire();
      await queued;
      const faults = world.proxies.map((proxy) => proxy.dropAnswerTo(quorumForce.sha));
      expect(await locks.forceRelease('forced')).toBe(true);
      await Promise.all(faults.map(({ hit }) => hit));
      expect([await held.verify(), await (await next).verify()]).toEqual([false, true]);
      expect(await (await next).release()).toBe(true);
    });

    it('a renewal whose answers were lost is unknown, never lost', async () => {
      const locks = await world.open();
      const hold = await locks.lock('renewed').acquire({ ttl: 3000 });
      const renewed = new Promise((resolve) => locks.on('renewed', resolve));
      for (const proxy of at(world.proxies, 0, 1)) proxy.dropAnswerTo(quorumRenew.sha);
      await renewed;
      expect(hold.isHeld()).toBe(true);
    });
  });

  it('a renewal that returns after its hold was lost brings nothing back', async () => {
    const locks = await world.open();
    const other = await world.direct();
    const hold = await locks.lock('stale').acquire({ ttl: 1000 });
    const held = at(world.proxies, 0, 1, 2).map((proxy) => proxy.holdRequest(quorumRenew.sha));
    await new Promise((resolve) => hold.signal.addEventListener('abort', resolve));
    const next = await other.lock('stale').acquire({ ttl: 30_000, wait: 15_000 });
    for (const fault of held) fault.heal();
    expect(next.fencingToken).toBeGreaterThan(hold.fencingToken);
    expect([hold.isHeld(), await next.verify()]).toEqual([false, true]);
    expect((await other.inspect('stale')).owner).toBe(next.owner);
  });

  it('with one away, what one of the others has is listed as what it may be, and nobody vouches for it', async () => {
    const locks = await world.open();
    await locks.lock('sure').acquire();
    await world.clients[0]?.set('holdfast:{split}', 'host:9:b#1\n7\n1\n', 'PX', 60_000);
    await cutOff(world.proxies[2]);
    const met: string[] = [];
    for await (const { name } of locks.list()) met.push(name);
    expect(met.sort()).toEqual(['split', 'sure']);
    await expect(locks.inspect('split')).rejects.toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
    expect((await locks.inspect('sure')).held).toBe(true);
  });

  it('a token is written back: the next majority shares one server with this one, and not its counter', async () => {
    const locks = await world.open();
    const ahead = BigInt(Date.now() + 3_600_000) * 1000n;
    await world.clients[0]?.set('holdfast:{fence}:fence', String(ahead));
    await cutOff(world.proxies[2]);
    const first = await locks.lock('fence').acquire({ wait: 5000 });
    expect(first.fencingToken).toBeGreaterThan(ahead);
    expect(await first.release()).toBe(true);
    await world.proxies[2]?.heal();
    await cutOff(world.proxies[0]);
    const second = await locks.lock('fence').acquire({ wait: 15_000 });
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
  });

  it('real-cause-hidden: a refusal of every server is told at once, with its cause', async () => {
    const url = `redis+quorum://nobody:wrong@${world.proxies.map(({ address }) => address).join()}`;
    const { error, ms } = await timed(createLocks(redisQuorumBackend({ url })));
    expect(error).toMatchObject({
      code: 'BACKEND_REFUSED',
      cause: { message: expect.stringContaining('WRONGPASS') },
    });
    expect(ms).toBeLessThan(10_000);
    expect(JSON.stringify(error)).not.toContain('wrong@');
  });

  it('clients that were handed in are neither closed nor changed', async () => {
    const clients = world.servers.nodes.map(
      ({ port }, index) => new Redis(port, { keyPrefix: `app${index}:` }),
    );
    await Promise.all(clients.map((client) => client.ping()));
    const locks = await createLocks(redisQuorumBackend({ clients, ...REMEMBERS }));
    const hold = await locks.lock('mine').acquire();
    await until(
      async () =>
        (await Promise.all(clients.map((client) => client.exists('holdfast:{mine}')))).join() === '1,1,1',
    );
    await hold.release();
    await locks.close();
    expect(clients.map((client) => client.status)).toEqual(['ready', 'ready', 'ready']);
    for (const client of clients) client.disconnect();
  });
});

describe('five servers', () => {
  let world: World;

  beforeAll(async () => {
    world = new World(await startRedisQuorum({ servers: 5 }));
  });
  afterAll(() => world.stop());
  beforeEach(() => world.begin());
  afterEach(() => world.end());

  it('quorum-edge-loss: a hold of a bare majority is made whole before it can be lost', async () => {
    const locks = await world.open();
    for (const client of world.clients.slice(3)) {
      await client.set('holdfast:{edge}', 'host:9:b#1\n1\n1\n', 'PX', 60_000);
    }
    const hold = await locks.lock('edge').acquire({ ttl: 3000 });
    for (const client of world.clients.slice(3)) await client.del('holdfast:{edge}');
    await until(async () => (await world.having('holdfast:{edge}')).length === 5);
    await world.clients[2]?.flushall();
    const other = await world.direct();
    expect(await other.lock('edge').tryAcquire()).toBeNull();
    expect([hold.isHeld(), await hold.verify()]).toEqual([true, true]);
  });

  it('with two away locks go on, with three they do not', async () => {
    const locks = await world.open();
    const [first, second, third] = world.proxies;
    await cutOff(first);
    await cutOff(second);
    const hold = await locks.lock('most').acquire({ ttl: 2000, wait: 10_000 });
    await new Promise((resolve) => locks.on('renewed', resolve));
    expect(await hold.release()).toBe(true);
    await cutOff(third);
    const { error } = await timed(locks.lock('most').acquire({ wait: 1500 }));
    expect(error).toMatchObject({
      code: 'BACKEND_UNAVAILABLE',
      message: expect.stringMatching(/too few of 5 Redis servers .*: 3 are needed/),
    });
  });

  it('the slowest two cost nothing', async () => {
    const locks = await world.open();
    await locks.lock('warm').run(() => undefined);
    for (const proxy of world.proxies.slice(3)) proxy.delay({ up: 20_000 });
    const { ms } = await timed(locks.lock('quick').acquire());
    expect(ms).toBeLessThan(10_000);
  });
});

describe('what is no quorum is refused before anything is sent:', () => {
  it.each([
    ['two servers', 'redis+quorum://a,b', 'no quorum'],
    ['a server twice', 'redis+quorum://a,b,a', 'twice'],
  ])('%s', (_what, url, message) => {
    expect(() => redisQuorumBackend({ url })).toThrow(message);
  });
});
