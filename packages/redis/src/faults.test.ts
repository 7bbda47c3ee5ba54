import { type FaultProxy, type RedisHandle, redisCommand, startProxy, startRedis } from '@holdfast/testbed';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { acquire, force, refresh, release, renew } from './scripts.generated.js';
import { admin, open, timed, until } from './test-kit.js';

let server: RedisHandle;
let proxy: FaultProxy;

beforeAll(async () => {
  server = await startRedis({ own: true });
});

afterAll(() => server.stop());

beforeEach(async () => {
  proxy = await startProxy({ target: server.node });
});

afterEach(() => proxy.stop());

/** Through the proxy. */
const url = (db = 0) => `redis://${proxy.address}/${db}`;

const request = {
  acquire: acquire.sha,
  release: release.sha,
  renew: renew.sha,
  refresh: refresh.sha,
  force: force.sha,
};

const isTombstone = (member: string) => member.startsWith('! ');

describe('an answer that is lost', () => {
  it('self-block-own-key: the owner that asks again has the grant that it has', async () => {
    await using a = await open({ url: url() });
    await using b = await open({ url: server.url });
    // The script is known to the server, so that the request is known by its hash.
    await (await a.lock('warm').acquire()).release();
    const fault = proxy.dropAnswerTo(request.acquire);

    const hold = await a.lock('job').acquire({ ttl: 30_000, wait: 10_000 });

    expect(fault.hits).toBe(1);
    expect(hold.isHeld()).toBe(true);
    expect(await b.lock('job').tryAcquire()).toBeNull();
    using client = admin(server.url);
    expect(await client.pttl('holdfast:{job}')).toBeLessThanOrEqual(30_000);
    expect(await hold.release()).toBe(true);
  });

  it('self-block-own-key: a caller that gives up leaves no key behind', async () => {
    await using a = await open({ url: url() });
    await using b = await open({ url: server.url });
    await (await a.lock('warm').acquire()).release();
    proxy.holdAnswerTo(request.acquire);

    await expect(a.lock('given-up').acquire({ ttl: 60_000, wait: 300 })).rejects.toMatchObject({
      code: 'BACKEND_UNAVAILABLE',
    });

    expect((await b.lock('given-up').acquire({ wait: 15_000 })).isHeld()).toBe(true);
  });

  it.each([false, true])(
    'to a release by force is one all the same, and nobody else is hit (expecting: %s)',
    async (expecting) => {
      await using a = await open({ url: url() });
      await using b = await open({ url: server.url });
      await (await b.lock('warm').acquire()).release();
      expect(await b.lock('warm').acquire()).toBeDefined();
      expect(await b.forceRelease('warm')).toBe(true);
      const held = await b.lock('job').acquire();
      const queued = new Promise((resolve) => b.on('waiting', resolve));
      const next = b.lock('job').acquire();
      await queued;
      const fault = proxy.dropAnswerTo(request.force);
      const expected = expecting ? { fencingToken: held.fencingToken } : undefined;

      expect(await a.forceRelease('job', expected)).toBe(true);

      expect(fault.hits).toBe(1);
      expect([await held.verify(), await (await next).verify()]).toEqual([false, true]);
      expect(await a.forceRelease('job', { fencingToken: held.fencingToken })).toBe(false);
      await (await next).release();
    },
  );

  it('to a renewal costs nothing: the next one renews', async () => {
    await using a = await open({ url: url() });
    const hold = await a.lock('renewed').acquire({ ttl: 3000 });
    const renewed = new Promise((resolve) => a.on('renewed', resolve));
    const fault = proxy.dropAnswerTo(request.renew);

    await renewed;

    expect(fault.hits).toBe(1);
    expect(hold.isHeld()).toBe(true);
  });

  it('to a release is asked for again, and the name is free', async () => {
    await using a = await open({ url: url() });
    await using b = await open({ url: server.url });
    const hold = await a.lock('released').acquire();
    await (await a.lock('warm').acquire()).release();
    proxy.dropAnswerTo(request.release);

    await hold.release();

    expect(await b.lock('released').tryAcquire()).not.toBeNull();
  });
});

describe('clean-up is not overtaken by what it cleans', () => {
  it('a claim given up with its attempt unanswered leaves a tombstone, and so its attempt comes to nothing', async () => {
    await using a = await open({ url: url() });
    await using b = await open({ url: server.url });
    await (await a.lock('warm').acquire()).release();
    proxy.holdRequest(request.acquire);

    await expect(a.lock('late').acquire({ ttl: 60_000, wait: 200 })).rejects.toMatchObject({
      code: 'BACKEND_UNAVAILABLE',
    });

    using client = admin(server.url);
    const tombstones = async () =>
      (await client.zrange('holdfast:{late}:alive', '0', '-1')).filter(isTombstone);
    await until(async () => (await tombstones()).length === 1);
    const owner = (await tombstones())[0]?.slice(2) ?? '';
    const keys = ['', ':fence', ':queue', ':alive'].map((suffix) => `holdfast:{late}${suffix}`);
    const late = client.evalsha(acquire.sha, keys.length, ...keys, owner, '60000', '');
    await expect(late).rejects.toThrow('GONE');
    expect((await b.lock('late').tryAcquire())?.isHeld()).toBe(true);
  });
});

describe('a connection that breaks', () => {
  it('inflight-never-settles: acquire, extend and release settle and work', async () => {
    await using a = await open({ url: url() });
    const first = proxy.holdRequest(request.acquire);
    const acquiring = a.lock('broken').acquire({ wait: 15_000 });
    await first.hit;
    proxy.reset();
    await proxy.heal();
    const hold = await acquiring;

    const second = proxy.holdRequest(request.renew);
    const extending = timed(hold.extend(20_000));
    await second.hit;
    proxy.reset();
    await proxy.heal();
    expect((await extending).ms).toBeLessThan(15_000);

    const third = proxy.holdRequest(request.release);
    const releasing = hold.release();
    await third.hit;
    proxy.reset();
    await proxy.heal();
    expect(await releasing).toBe(true);
  });

  it('resend-wrong-db: nothing is ever run in database 0', async () => {
    await using a = await open({ url: url(1) });
    await (await a.lock('warm').acquire()).release();
    const fault = proxy.holdRequest(request.acquire);
    const acquiring = a.lock('db').acquire({ wait: 15_000 });
    await fault.hit;
    proxy.reset();
    await proxy.heal();
    await acquiring;

    using zero = admin(`redis://${server.node.address}/0`);
    using one = admin(`redis://${server.node.address}/1`);
    expect(await zero.keys('holdfast:{db}*')).toEqual([]);
    expect(await one.exists('holdfast:{db}')).toBe(1);
    await one.flushdb();
  });

  it('partition-not-noticed: a hold is told lost before its time at the server ends', async () => {
    await using a = await open({ url: url() });
    const hold = await a.lock('partitioned').acquire({ ttl: 3000 });
    using client = admin(server.url);
    const hole = proxy.blackHole();

    await new Promise((resolve) => hold.signal.addEventListener('abort', resolve));

    expect(hold.isHeld()).toBe(false);
    expect(await client.exists('holdfast:{partitioned}')).toBe(1);
    hole.heal();
  });

  it('a black hole is noticed: a new connection serves what the silent one did not', async () => {
    await using a = await open({ url: url() });
    await (await a.lock('warm').acquire()).release();
    // Only what is open now is silent for ever; connections made later work.
    const silent = new Set<number>();
    const hole = proxy.blackHole('both', {
      only: ({ id, opening }) => opening.length > 0 && silent.add(id).size > 0 && id <= 2,
    });

    const hold = await a.lock('silent').acquire({ wait: 20_000 });

    expect(hold.isHeld()).toBe(true);
    hole.heal();
  });
});

describe('close', () => {
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

  it('leaves no timer behind that keeps the process alive, also after connections were reset', async () => {
    const before = timers();
    const locks = await open({ url: url() });
    for (let resets = 0; resets < 5; resets++) {
      proxy.reset();
      await locks.lock('reset').run(() => undefined, { wait: 15_000 });
    }
    await locks.close();
    // The last sockets are told of their end in a later turn.
    await until(() => timers() <= before);
  });
});

describe('a server that accepts connections and says nothing', () => {
  it('is dialled again, so that the lock is had once it speaks', async () => {
    await using a = await open({ url: url() });
    const hole = proxy.blackHole();
    proxy.reset();
    const dialled = new Set<number>();
    // By the name that they give themselves: those for messages have another.
    proxy.observe((sent, { id }) => sent.includes('$8\r\nholdfast\r\n') && dialled.add(id).has(id));
    const waiting = a.lock('mute').acquire({ wait: 30_000 });
    // The second is dialled when the first has not become ready in time.
    await until(() => dialled.size >= 2);
    hole.heal();
    expect((await waiting).isHeld()).toBe(true);
  });
});

describe('a lost wake-up', () => {
  it('resend-before-subscriber: a waiter finds out after the connections are back', async () => {
    await using a = await open({ url: server.url });
    await using b = await open({ url: url() });
    const hold = await a.lock('wake').acquire({ ttl: 60_000 });
    const waiting = b.lock('wake').acquire({ wait: 30_000, ttl: 60_000 });
    await new Promise((resolve) => b.on('waiting', resolve));

    const refused = await proxy.refuse();
    proxy.reset();
    await hold.release();
    refused.heal();

    expect((await timed(waiting)).ms).toBeLessThan(10_000);
  });

  it('a message that vanished is made up for by the next sign of life', async () => {
    await using a = await open({ url: server.url });
    await using b = await open({ url: url() });
    const hold = await a.lock('vanished').acquire({ ttl: 60_000 });
    const waiting = b.lock('vanished').acquire({ wait: 30_000, ttl: 60_000 });
    await new Promise((resolve) => b.on('waiting', resolve));
    const fault = proxy.swallow('$7\r\nmessage');

    await hold.release();

    expect((await timed(waiting)).ms).toBeLessThan(10_000);
    expect(fault.hits).toBe(1);
  });

  it('subscribe-after-unlock: locks are open once the subscription is, however late', async () => {
    const slow = proxy.holdAnswerTo(redisCommand('subscribe'));
    const opening = open({ url: url() });
    await slow.hit;
    await using a = await open({ url: server.url });
    const hold = await a.lock('late-ack').acquire({ ttl: 30_000 });
    slow.heal();
    await using b = await opening;
    const waiting = b.lock('late-ack').acquire({ wait: 10_000 });
    await new Promise((resolve) => b.on('waiting', resolve));

    await hold.release();

    expect((await waiting).isHeld()).toBe(true);
  });
});
