import type { BackendHost, Claim, Clock, Contended, Locks } from '@holdfast/core';
import { LockLostError, systemClock } from '@holdfast/core';
import { type EtcdHandle, type FaultProxy, http2Answer, startEtcd, startProxy } from '@holdfast/testbed';
import { Etcd3 } from 'etcd3';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { etcdBackend } from './module.js';
import { Admin, FACTOR, fresh, open, pause, timed, until } from './test-kit.js';

let server: EtcdHandle;
let proxy: FaultProxy;
let admin: Admin;

beforeAll(async () => {
  server = await startEtcd({ own: true });
  proxy = await startProxy({ target: server.node });
  admin = new Admin(server.hosts);
});

afterAll(async () => {
  admin[Symbol.dispose]();
  await proxy.stop();
  await server.stop();
});

beforeEach(() => proxy.heal());

function host(commandTimeout = 1_000): BackendHost {
  return { clock: systemClock, commandTimeout, lost: () => undefined, report: () => undefined };
}

/** ms: how long a revocation that failed once waits before the next try. */
const FIRST_PAUSE = 100;

function claim(name: string, more: Partial<Claim> = {}): Claim {
  return { name, owner: `test:${fresh('owner')}`, ttl: 30_000, queue: true, renew: true, ...more };
}

/** A release by force. Reading the claims names the end of their range; breaking one names a single key. */
function breaking(name: string): (sent: Buffer) => boolean {
  return (sent) => sent.includes(`${name}/claim/`) && !sent.includes(`${name}/claim0`);
}

describe('a lost answer', () => {
  it('self-block-own-key: to an acquisition is asked for again, and finds what it made', async () => {
    await using a = await open({ hosts: proxy.address });
    const name = fresh();
    await a.locks.lock(fresh('warm')).run(() => undefined);
    const fault = proxy.dropAnswerTo(name, { answer: http2Answer });
    const hold = await a.locks.lock(name).acquire({ wait: '5s' });
    expect(fault.hits).toBe(1);
    expect(await admin.keys(`holdfast/${name}/`)).toHaveLength(1);
    expect(await hold.release()).toBe(true);
  });

  it('to an acquisition keeps the key of that claim from the next; else a lock that is taken again has the same', async () => {
    await using a = await open({ hosts: proxy.address });
    const name = fresh();
    const keyOfNext = async (): Promise<string> => {
      const hold = await a.locks.lock(name).acquire({ wait: '5s' });
      const keys = await admin.keys(`holdfast/${name}/`);
      expect(keys).toHaveLength(1);
      expect(await hold.release()).toBe(true);
      return String(keys[0]);
    };
    const before = [await keyOfNext(), await keyOfNext(), await keyOfNext()];
    const fault = proxy.dropAnswerTo(name, { answer: http2Answer });
    const doubtful = await keyOfNext();
    expect(fault.hits).toBe(1);
    const after = [await keyOfNext(), await keyOfNext()];
    expect(new Set(before).size).toBe(1);
    expect(doubtful).toBe(before[0]);
    expect(new Set(after).size).toBe(1);
    expect(after[0]).not.toBe(doubtful);
  });

  it('to a try that was asked for again: what is over by then is not gone on with', async () => {
    await using other = await open({ hosts: server.hosts });
    const backend = etcdBackend({ hosts: proxy.address });
    await backend.open(host(5_000 * FACTOR));
    const warm = claim(fresh('warm'));
    await backend.attempt(warm);
    await backend.release(warm);
    const name = fresh();
    const held = await other.locks.lock(name).acquire();
    const trying = claim(name, { queue: false });
    const kept = proxy.holdRequest(`${name}/claim/`);
    const first = backend.attempt(trying);
    await kept.hit;
    const second = backend.attempt(trying);
    kept.heal();
    expect(await first).toMatchObject({ holder: { owner: held.owner } });
    await expect(second).rejects.toMatchObject({ code: 'BACKEND_UNAVAILABLE', transient: true });
    await held.release();
    expect(await backend.attempt(trying)).toHaveProperty('fencingToken');
    expect(await backend.release(trying)).toBe(true);
    await backend.close();
  });

  it(
    'to everything that gives a place back: it lapses, whoever else of the process waits',
    async () => {
      await using holder = await open({ hosts: server.hosts });
      await using a = await open({ hosts: proxy.address });
      const [name, elsewhere] = [fresh(), fresh()];
      const [hold, other] = [
        await holder.locks.lock(name).acquire(),
        await holder.locks.lock(elsewhere).acquire(),
      ];
      const waiting = a.locks.lock(elsewhere).acquire();
      await until(async () => (await holder.locks.inspect(elsewhere)).waiters.length === 1);
      const given = claim(name);
      const fault = proxy.dropAnswerTo(`${name}/claim`, { answer: http2Answer, times: 1_000 });
      await expect(a.backend.attempt(given)).rejects.toThrow();
      expect(await admin.keys(`holdfast/${name}/`)).toHaveLength(2);
      for (let turn = 0; turn < 2; turn++) await expect(a.backend.release(given)).rejects.toThrow();
      fault.heal();
      await until(async () => (await admin.keys(`holdfast/${name}/`)).length === 1);
      await other.release();
      expect((await waiting).isHeld()).toBe(true);
      expect(await hold.verify()).toBe(true);
    },
    60_000 * FACTOR,
  );

  it('to an acquisition that waits leaves one place in the queue', async () => {
    await using a = await open({ hosts: server.hosts });
    await using b = await open({ hosts: proxy.address });
    await b.locks.lock(fresh('warm')).run(() => undefined);
    const name = fresh();
    const held = await a.locks.lock(name).acquire();
    const fault = proxy.dropAnswerTo(name, { answer: http2Answer });
    const waiting = b.locks.lock(name).acquire({ wait: '10s' });
    await fault.hit;
    await until(async () => (await a.locks.inspect(name)).waiters.length === 1);
    await held.release();
    const hold = await waiting;
    expect(hold.fencingToken).toBeGreaterThan(held.fencingToken);
    expect(await admin.keys(`holdfast/${name}/`)).toHaveLength(1);
  });

  it('to the grant of a waiter is asked for again', async () => {
    await using a = await open({ hosts: server.hosts });
    await using b = await open({ hosts: proxy.address });
    const name = fresh();
    const held = await a.locks.lock(name).acquire();
    const waiting = b.locks.lock(name).acquire({ wait: '10s' });
    await until(async () => (await a.locks.inspect(name)).waiters.length === 1);
    const fault = proxy.dropAnswerTo(`${encodeURIComponent(name)}/claim0`, { answer: http2Answer });
    await held.release();
    const hold = await waiting;
    expect(fault.hits).toBe(1);
    expect(hold.isHeld()).toBe(true);
    expect(await hold.verify()).toBe(true);
  });

  it('to a release is a release all the same', async () => {
    await using a = await open({ hosts: proxy.address });
    const name = fresh();
    const hold = await a.locks.lock(name).acquire();
    const fault = proxy.dropAnswerTo(name, { answer: http2Answer });
    expect(await hold.release()).toBe(true);
    expect(fault.hits).toBe(1);
    expect(await admin.keys(`holdfast/${name}/`)).toEqual([]);
  });

  it('stale-release-deletes-newer: to a release never frees what came later', async () => {
    await using a = await open({ hosts: proxy.address });
    const name = fresh();
    const backend = etcdBackend({ hosts: proxy.address });
    await backend.open(host());
    const first = claim(name);
    await backend.attempt(first);
    const fault = proxy.dropAnswerTo(name, { answer: http2Answer });
    await expect(backend.release(first)).rejects.toThrow();
    expect(fault.hits).toBe(1);
    const second = await backend.attempt(claim(name));
    expect(second).toHaveProperty('fencingToken');
    expect(await backend.release(first)).toBe(false);
    expect(await a.locks.inspect(name)).toMatchObject({
      held: true,
      owner: (second as { claim: Claim }).claim.owner,
    });
    expect(await a.locks.lock(name).tryAcquire()).toBeNull();
    await backend.close();
  });

  it.each([
    ['whoever holds it', false],
    ['if the token is the expected one', true],
  ])('to the release by force of a lock, %s, is a release all the same', async (_which, expecting) => {
    await using a = await open({ hosts: server.hosts });
    await using b = await open({ hosts: proxy.address });
    const name = fresh();
    const held = await a.locks.lock(name).acquire();
    const fault = proxy.dropAnswerTo(breaking(name), { answer: http2Answer });
    const expected = expecting ? { fencingToken: held.fencingToken } : undefined;
    expect(await b.locks.forceRelease(name, expected)).toBe(true);
    expect(fault.hits).toBe(1);
    expect(await b.locks.forceRelease(name)).toBe(false);
    expect(await held.verify()).toBe(false);
    await until(async () => (await admin.keys(`holdfast/${name}/`)).length === 0);
  });

  it('to the release by force of a lock whose holder gave it back first is no release', async () => {
    await using a = await open({ hosts: server.hosts });
    await using b = await open({ hosts: proxy.address });
    const name = fresh();
    const held = await a.locks.lock(name).acquire();
    const fault = proxy.dropRequest(breaking(name));
    const forced = b.locks.forceRelease(name);
    await fault.hit;
    expect(await held.release()).toBe(true);
    expect(await forced).toBe(false);
  });

  it('to the grant of a lease leaves no lease', async () => {
    await using a = await open({ hosts: proxy.address });
    const before = (await admin.leases()).length;
    // The only request with a ttl of 77 s: field TTL, varint.
    const fault = proxy.dropAnswerTo(Buffer.from([0x08, 77]), { answer: http2Answer });
    const hold = await a.locks.lock(fresh()).acquire({ ttl: '77s', wait: '10s' });
    expect(fault.hits).toBe(1);
    await hold.release();
    await admin.leasesAtMost(before, 4_000 * FACTOR);
  });
});

describe('an answer that is lost, whichever it is,', () => {
  type Story = (a: Locks, other: Locks) => Promise<void>;

  /** Waiting, extending, proving, looking, giving back, each through the proxy. */
  const holding: Story = async (a, other) => {
    const name = fresh('story');
    const first = await other.lock(name).acquire();
    const waiting = a.lock(name).acquire({ wait: '30s', ttl: '30s' });
    await until(async () => (await other.inspect(name)).waiters.length === 1);
    expect(await first.release()).toBe(true);
    const hold = await waiting;
    await hold.extend('60s');
    expect(hold.fencingToken).toBeGreaterThan(first.fencingToken);
    expect([hold.isHeld(), await hold.verify()]).toEqual([true, true]);
    expect(await a.inspect(name)).toMatchObject({ held: true, owner: hold.owner, waiters: [] });
    expect(await other.lock(name).tryAcquire()).toBeNull();
    expect(await hold.release()).toBe(true);
    expect(await other.inspect(name)).toMatchObject({ held: false, waiters: [] });
  };

  const handingOver: Story = async (a, other) => {
    const name = fresh('story');
    const hold = await a.lock(name).acquire({ wait: '30s', ttl: '12s' });
    const adopted = await a.adopt(hold.serialize());
    expect(adopted.fencingToken).toBe(hold.fencingToken);
    expect([adopted.isHeld(), await adopted.verify()]).toEqual([true, true]);
    expect(await adopted.release()).toBe(true);
    expect(await other.inspect(name)).toMatchObject({ held: false, waiters: [] });
  };

  it.each<[string, Story, number]>([
    ['of a hold', holding, 2_000],
    // A hold whose handing over has not been confirmed when its giver closes keeps its lease until that lapses.
    ['of a hold that is handed over', handingOver, 14_000],
  ])(
    'costs time and nothing else: %s',
    async (_, story, settled) => {
      await using other = await open({ hosts: server.hosts });
      const before = (await admin.leases()).length;
      const seen = proxy.observe(() => true);
      await play((a) => story(a, other.locks));
      const requests = seen.hits;
      expect(requests).toBeGreaterThan(5);
      for (let lost = 1; lost <= requests; lost++) {
        await play(async (a) => {
          let count = 0;
          const fault = proxy.dropAnswerTo(() => ++count === lost);
          await story(a, other.locks);
          fault.heal();
        });
      }
      await until(async () => (await admin.keys('holdfast/story-')).length === 0);
      await admin.leasesAtMost(before, settled * FACTOR);
    },
    120_000 * FACTOR,
  );

  async function play(work: (a: Locks) => Promise<void>): Promise<void> {
    await using a = await open({ hosts: proxy.address });
    await work(a.locks);
  }
});

describe('a request that arrives late', () => {
  it('after its claim was given up makes nothing that stays', async () => {
    const backend = etcdBackend({ hosts: proxy.address });
    await backend.open(host());
    const other = claim(fresh('other'));
    await backend.attempt(other);
    const name = fresh();
    const late = claim(name);
    const fault = proxy.holdRequest(name);
    await expect(backend.attempt(late)).rejects.toThrow(/did not answer/);
    await backend.release(late);
    fault.heal();
    // The other hold keeps the shared lease alive: without care the late key would live as long.
    await until(async () => {
      await backend.renew([{ claim: other, fencingToken: await tokenOf(other.name), ttl: other.ttl }]);
      return (await admin.keys(`holdfast/${name}/`)).length === 0 && (await admin.leases()).length <= 1;
    });
    await pause(300);
    expect(await admin.keys(`holdfast/${name}/`)).toEqual([]);
    expect(
      await backend.verify({ claim: other, fencingToken: await tokenOf(other.name), ttl: other.ttl }),
    ).toBe(true);
    await backend.close();
  });

  async function tokenOf(name: string): Promise<bigint> {
    const { kvs } = await admin.client
      .getAll()
      .prefix(`holdfast/${encodeURIComponent(name)}/`)
      .exec();
    return BigInt(kvs[0]?.create_revision ?? 0);
  }
});

describe('a partition', () => {
  it('partition-not-noticed: is a loss before the ttl is over', async () => {
    await using a = await open({ hosts: proxy.address });
    const hold = await a.locks.lock(fresh()).acquire({ ttl: '3s' });
    const renewed = performance.now();
    proxy.blackHole();
    await once(hold.signal);
    expect(performance.now() - renewed).toBeLessThan(3_000 + 500 * FACTOR);
    expect(hold.signal.reason).toBeInstanceOf(LockLostError);
    await proxy.heal();
  });

  it('lost-after-two-ttl: a stopped server is a loss after one ttl, not after two', async () => {
    await using other = await startEtcdOfItsOwn();
    await using a = await open({ url: other.url });
    const hold = await a.locks.lock(fresh()).acquire({ ttl: '5s' });
    const started = performance.now();
    await other.node.kill();
    await once(hold.signal);
    expect(performance.now() - started).toBeLessThan(5_000 + 500 * FACTOR);
    await other.node.start();
  });

  it('of a waiter costs it its place, and it joins again at the end', async () => {
    await using a = await open({ hosts: server.hosts });
    await using b = await open({ hosts: proxy.address });
    const name = fresh();
    const held = await a.locks.lock(name).acquire();
    const cutOff = b.locks.lock(name).acquire({ wait: '60s' });
    await until(async () => (await a.locks.inspect(name)).waiters.length === 1);
    const { owner } = (await a.locks.inspect(name)).waiters[0] ?? { owner: '' };
    const fault = proxy.blackHole();
    await until(async () => (await a.locks.inspect(name)).waiters.length === 0);
    const second = a.locks.lock(name).acquire({ wait: '60s' });
    await until(async () => (await a.locks.inspect(name)).waiters.length === 1);
    fault.heal();
    await until(async () => (await a.locks.inspect(name)).waiters.length === 2);
    expect((await a.locks.inspect(name)).waiters[1]?.owner).toBe(owner);
    await held.release();
    await (await second).release();
    expect((await cutOff).owner).toBe(owner);
  });

  it('etcd-granted-dead-lease: a waiter whose lease ended is not granted on it', async () => {
    await using a = await open({ hosts: server.hosts });
    await using b = await open({ hosts: proxy.address });
    const name = fresh();
    const held = await a.locks.lock(name).acquire({ ttl: '20s' });
    const cutOff = timed(b.locks.lock(name).acquire({ ttl: '5s', wait: '4s' }));
    await until(async () => (await a.locks.inspect(name)).waiters.length === 1);
    proxy.blackHole();
    await held.release();
    await using c = await open({ hosts: server.hosts });
    const hold = await c.locks.lock(name).acquire({ wait: '20s' });
    const { error, ms } = await cutOff;
    expect(error).toMatchObject({ name: expect.stringMatching(/LockTimeoutError|BackendError/) });
    expect(ms).toBeLessThan(4_000 + 1_000 * FACTOR);
    await proxy.heal();
    expect(await hold.verify()).toBe(true);
    await hold.release();
  });

  it('that heals within the ttl costs nothing', async () => {
    await using a = await open({ hosts: proxy.address });
    const hold = await a.locks.lock(fresh()).acquire({ ttl: '10s' });
    const fault = proxy.blackHole();
    await pause(5_000);
    fault.heal();
    await pause(6_000);
    expect([hold.isHeld(), await hold.verify()]).toEqual([true, true]);
  });
});

describe('a client that was handed in', () => {
  it('is not shut out for 5 s by its own circuit breaker after a silence', async () => {
    const client = new Etcd3({ hosts: proxy.address });
    await using a = await open({ client }, { commandTimeout: 600 });
    await using hold = await a.locks.lock(fresh()).acquire({ ttl: '30s' });
    const fault = proxy.blackHole();
    for (let count = 0; count < 4; count++) {
      const { error } = await timed(a.locks.lock(fresh()).acquire({ wait: 0 }));
      expect(error).toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
    }
    fault.heal();
    const { value, ms } = await timed(a.locks.lock(fresh()).acquire({ wait: '4s' }));
    expect(value?.isHeld()).toBe(true);
    expect(ms).toBeLessThan(1_500 * FACTOR);
    expect(await hold.verify()).toBe(true);
    client.close();
  });

  it('serves the locks while its circuit is open for the application', async () => {
    const client = new Etcd3({ hosts: proxy.address });
    await using a = await open({ client });
    await using hold = await a.locks.lock(fresh()).acquire({ ttl: '30s' });
    const fault = proxy.blackHole();
    const soon = (): { deadline: number } => ({ deadline: Date.now() + 200 });
    for (let count = 0; count < 2; count++)
      await expect(client.get('x').options(soon()).string()).rejects.toThrow();
    fault.heal();
    await expect(client.get('x').string()).rejects.toThrow(/circuit/);
    await using other = await a.locks.lock(fresh()).acquire({ wait: '2s' });
    expect([other.isHeld(), await hold.verify()]).toEqual([true, true]);
    client.close();
  });

  it('that the application has closed refuses, at once and for good', async () => {
    const client = new Etcd3({ hosts: server.hosts.slice() });
    await using a = await open({ client });
    client.close();
    const { error, ms } = await timed(a.locks.lock(fresh()).acquire({ wait: '20s' }));
    expect(error).toMatchObject({ code: 'BACKEND_REFUSED', message: expect.stringContaining('closed') });
    expect(ms).toBeLessThan(2_000 * FACTOR);
  });

  it('stays open when the locks are closed', async () => {
    const client = new Etcd3({ hosts: server.hosts.slice() });
    const a = await open({ client });
    await a.locks.lock(fresh()).run(() => undefined);
    await a.locks.close();
    expect(await client.get('nothing').exists()).toBe(false);
    client.close();
  });
});

describe('a waiter', () => {
  it('etcd-compacted-watch: is served although the history was compacted while it was cut off', async () => {
    await using a = await open({ hosts: server.hosts });
    await using b = await open({ hosts: proxy.address });
    const name = fresh();
    const held = await a.locks.lock(name).acquire();
    const waiting = timed(b.locks.lock(name).acquire({ wait: '30s' }));
    await until(async () => (await a.locks.inspect(name)).waiters.length === 1);
    proxy.reset();
    const fault = await proxy.refuse();
    await held.release();
    await admin.compact();
    fault.heal();
    const healed = performance.now();
    const { value } = await waiting;
    expect(performance.now() - healed).toBeLessThan(2_000 * FACTOR);
    expect(value?.isHeld()).toBe(true);
  });

  it('is served although the event that should wake it was lost', async () => {
    await using a = await open({ hosts: server.hosts });
    await using b = await open({ hosts: proxy.address });
    const name = fresh();
    const held = await a.locks.lock(name).acquire();
    const waiting = b.locks.lock(name).acquire({ wait: '30s' });
    await until(async () => (await a.locks.inspect(name)).waiters.length === 1);
    await until(() => b.backend.kept.watches === 2);
    const fault = proxy.swallow(encodeURIComponent(name));
    await held.release();
    expect((await waiting).isHeld()).toBe(true);
    expect(fault.hits).toBe(1);
  });

  it('is served although its connections were cut', async () => {
    await using a = await open({ hosts: server.hosts });
    await using b = await open({ hosts: proxy.address });
    const name = fresh();
    const held = await a.locks.lock(name).acquire();
    const waiting = timed(b.locks.lock(name).acquire({ wait: '30s' }));
    await until(async () => (await a.locks.inspect(name)).waiters.length === 1);
    proxy.reset();
    await held.release();
    const { value, ms } = await waiting;
    expect(value?.isHeld()).toBe(true);
    expect(ms).toBeLessThan(5_000 * FACTOR);
  });
});

describe('leases', () => {
  it('etcd-lease-leak: are gone 2 s after the last claim that they served', async () => {
    await using a = await open({ hosts: server.hosts });
    await using b = await open({ hosts: server.hosts });
    const before = (await admin.leases()).length;
    const name = fresh();
    const held = await a.locks.lock(name).acquire();
    const withHolder = (await admin.leases()).length;
    const attempts = Array.from({ length: 100 }, () => timed(b.locks.lock(name).acquire({ wait: 100 })));
    const aborts = Array.from({ length: 20 }, () =>
      timed(b.locks.lock(name).acquire({ signal: AbortSignal.timeout(150) })),
    );
    for (const { error } of await Promise.all([...attempts, ...aborts])) expect(error).toBeDefined();
    await until(() => b.backend.kept.claims === 0);
    await admin.leasesAtMost(withHolder);
    await until(() => b.backend.kept.leases === 0);
    expect(b.backend.kept).toEqual({ claims: 0, leases: 0, watches: 0 });
    expect((await a.locks.inspect(name)).waiters).toEqual([]);
    await held.release();
    await admin.leasesAtMost(before);
  });

  it('of which many cannot be revoked at once are revoked later, without a warning of listeners', async () => {
    const warnings: Error[] = [];
    const warned = (warning: Error) => warnings.push(warning);
    process.on('warning', warned);
    const before = (await admin.leases()).length;
    let failures = 0;
    const clock: Clock = {
      ...systemClock,
      setTimer(delay, callback, options) {
        if (delay === FIRST_PAUSE) failures++;
        return systemClock.setTimer(delay, callback, options);
      },
    };
    const a = await open({ hosts: proxy.address }, { clock });
    const name = fresh();
    const holds = await Promise.all(
      Array.from({ length: 15 }, (_, index) =>
        a.locks.lock(`${name}-${index}`).acquire({ ttl: (10 + index) * 1000 }),
      ),
    );
    await Promise.all(holds.map((hold) => hold.release()));
    const refusal = await proxy.refuse();
    proxy.reset();
    // Leases are kept a little for whoever comes next: by then the server is out of reach.
    await until(() => failures >= holds.length);
    refusal.heal();
    await until(() => a.backend.kept.leases === 0);
    await admin.leasesAtMost(before);
    await a.locks.close();
    process.off('warning', warned);
    expect(warnings).toEqual([]);
  });

  it('are revoked by close() also where the connection has silently died', async () => {
    const before = (await admin.leases()).length;
    const a = await open({ hosts: proxy.address });
    const hold = await a.locks.lock(fresh()).acquire({ ttl: '60s' });
    expect(await hold.release()).toBe(true);
    const fault = proxy.dropRequest(() => true, { afterwards: 'mute', times: 1 });
    await a.locks.close();
    expect(fault.hits).toBe(1);
    await admin.leasesAtMost(before);
  });

  it('that somebody revokes are a loss at the next renewal, and the next hold has another', async () => {
    await using a = await open({ hosts: server.hosts });
    const before = new Set(await admin.leases());
    const name = fresh();
    const hold = await a.locks.lock(name).acquire({ ttl: '3s' });
    for (const id of await admin.leases()) if (!before.has(id)) await admin.revoke(id);
    await once(hold.signal);
    expect(hold.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'superseded' });
    expect(a.backend.kept.claims).toBe(0);
    const next = await a.locks.lock(name).acquire({ ttl: '3s' });
    expect(await next.verify()).toBe(true);
  });

  it('of a place that is lost and taken again, unseen, let the waiters between go ahead of it', async () => {
    const [a, b] = [etcdBackend({ hosts: server.hosts }), etcdBackend({ hosts: server.hosts })];
    const c = etcdBackend({ hosts: proxy.address });
    for (const backend of [a, b, c]) await backend.open(host(2_000 * FACTOR));
    const name = fresh();
    const [first, second, third] = [claim(name), claim(name), claim(name)];
    await a.attempt(first);
    await b.attempt(second);
    const contended = (await c.attempt(third)) as Contended;
    const watching = proxy.observe(`${encodeURIComponent(name)}/claim/`);
    const turn = c.awaitTurn(third, contended, new AbortController().signal);
    await watching.hit;

    const silence = proxy.blackHole('down');
    await b.release(second);
    // Under the same key, behind the third: whoever looks whether the key is there sees no change.
    await b.attempt(second);
    proxy.reset();
    silence.heal();

    // A look that fails is a reason to ask, too.
    await turn.catch(() => undefined);
    expect(await c.attempt(third)).toMatchObject({ holder: { owner: first.owner } });
    await a.release(first);
    expect(await c.attempt(third)).toHaveProperty('fencingToken');
    expect(await b.attempt(second)).toMatchObject({ holder: { owner: third.owner } });
    for (const backend of [a, b, c]) await backend.close();
  });

  it('that somebody revokes under a waiter cost it its place, not its turn', async () => {
    await using a = await open({ hosts: server.hosts });
    await using b = await open({ hosts: server.hosts });
    const name = fresh();
    const held = await a.locks.lock(name).acquire();
    const before = new Set(await admin.leases());
    const waiting = b.locks.lock(name).acquire({ wait: '20s', ttl: '9s' });
    await until(async () => (await a.locks.inspect(name)).waiters.length === 1);
    for (const id of await admin.leases()) if (!before.has(id)) await admin.revoke(id);
    await until(async () => (await a.locks.inspect(name)).waiters.length === 1);
    await held.release();
    const hold = await waiting;
    expect([hold.isHeld(), await hold.verify()]).toEqual([true, true]);
  });

  it('etcd-ttl-floor: are of whole seconds, not below the minimum, and the hold says so', async () => {
    await using a = await open({ hosts: server.hosts });
    const { ttl } = a.locks.backend.capabilities;
    expect(ttl).toEqual({ min: 2_000, max: 365 * 86_400_000, granularity: 1_000 });
    for (const [asked, granted] of [
      [300, 2_000],
      [999, 2_000],
      [1_000, 2_000],
      [1_500, 2_000],
      [2_001, 3_000],
      [4_500, 5_000],
    ] as const) {
      const name = fresh();
      await using hold = await a.locks.lock(name).acquire({ ttl: asked });
      expect(hold.ttl).toBe(granted);
      expect(hold.remaining()).toBeLessThanOrEqual(granted);
      expect((await a.locks.inspect(name)).expiresIn).toBeLessThanOrEqual(granted);
    }
  });

  it('ttl-unit-mixup: count in the unit that was meant', async () => {
    await using a = await open({ hosts: server.hosts });
    const name = fresh();
    await using hold = await a.locks.lock(name).acquire({ ttl: 2_000 });
    await hold.extend(3_000);
    const { expiresIn } = await a.locks.inspect(name);
    expect(expiresIn).toBeGreaterThanOrEqual(1_000);
    expect(expiresIn).toBeLessThanOrEqual(3_000);
  });

  it('of holds that are not renewed end with their ttl, whatever others do', async () => {
    await using a = await open({ hosts: server.hosts });
    await using renewed = await a.locks.lock(fresh()).acquire({ ttl: '3s' });
    const hold = await a.locks.lock(fresh()).acquire({ ttl: '3s', renew: false });
    await once(hold.signal);
    expect(hold.signal.reason).toMatchObject({ reason: 'expired' });
    expect(await renewed.verify()).toBe(true);
    expect((await a.locks.inspect(hold.name)).held).toBe(false);
  });

  it('etcd-orphan-default-lease: are kept alive for as long as a hold lasts', async () => {
    await using a = await open({ hosts: server.hosts });
    await using hold = await a.locks.lock(fresh()).acquire({ ttl: '2s' });
    await pause(15_000);
    expect([hold.isHeld(), await hold.verify()]).toEqual([true, true]);
  });
});

describe('foreign keys', () => {
  it('etcd-prefix-path: beside or under the name are not claims', async () => {
    await using a = await open({ hosts: server.hosts });
    const name = fresh('path');
    for (const key of [name, `${name}/1`, `holdfast/${name}`, `holdfast/${name}/1`, `holdfast/${name}/claim`])
      await admin.client.put(key).value('v').exec();
    await using hold = await a.locks.lock(name).acquire({ wait: 0 });
    expect(await a.locks.inspect(name)).toMatchObject({ owner: hold.owner, waiters: [] });
    const listed: string[] = [];
    for await (const state of a.locks.list({ prefix: name })) listed.push(state.name);
    expect(listed).toEqual([name]);
  });

  it.each([
    ['without a lease', undefined],
    ['with a lease', 60],
  ])('among the claims themselves, %s, neither hold nor wait', async (_, ttl) => {
    await using a = await open({ hosts: server.hosts });
    const name = fresh();
    const lease = ttl === undefined ? undefined : admin.client.lease(ttl, { autoKeepAlive: false });
    const id = lease === undefined ? '0' : await lease.grant();
    await admin.client.put(`holdfast/${name}/claim/1`).value('v').lease(id).exec();
    const hold = await a.locks.lock(name).acquire({ wait: 0 });
    expect(await a.locks.inspect(name)).toMatchObject({ held: true, owner: hold.owner, waiters: [] });
    expect(await a.locks.lock(name).tryAcquire()).toBeNull();
    await admin.client.put(`holdfast/${name}/claim/2`).value('v').lease(id).exec();
    const waiting = a.locks.lock(name).acquire({ wait: '10s' });
    await until(async () => (await a.locks.inspect(name)).waiters.length === 1);
    expect((await a.locks.inspect(name)).waiters[0]?.position).toBe(1);
    await hold.release();
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(hold.fencingToken);
    await next.release();
    expect(await admin.keys(`holdfast/${name}/`)).toHaveLength(2);
    await lease?.revoke();
  });
});

describe('one attempt', () => {
  it('timeout-zero-blocks: does not wait for the holder, and leaves no place in the queue', async () => {
    await using a = await open({ hosts: server.hosts });
    await using b = await open({ hosts: server.hosts });
    const name = fresh();
    await using _hold = await a.locks.lock(name).acquire({ ttl: '10s' });
    // A deadline of 1 ms passes before the first answer, which is then not known to be "contended".
    for (const [wait, code] of [
      [0, /^LOCK_TIMEOUT$/],
      [1, /^(LOCK_TIMEOUT|BACKEND_UNAVAILABLE)$/],
    ] as const) {
      const { error, ms } = await timed(b.locks.lock(name).acquire({ wait }));
      expect(error).toMatchObject({ code: expect.stringMatching(code) });
      expect(ms).toBeLessThan(1_000 * FACTOR);
    }
    await until(async () => (await admin.keys(`holdfast/${name}/`)).length === 1);
  });

  it('error-then-two-holders: that fails before it is applied finds the other that came first', async () => {
    const backend = etcdBackend({ hosts: proxy.address });
    await backend.open(host());
    await using b = await open({ hosts: server.hosts });
    const name = fresh();
    const first = claim(name);
    const fault = proxy.dropRequest(name);
    await expect(backend.attempt(first)).rejects.toThrow();
    expect(fault.hits).toBe(1);
    await using hold = await b.locks.lock(name).acquire({ wait: 0 });
    expect(await backend.attempt(first)).toMatchObject({ holder: { owner: hold.owner }, position: 1 });
    await backend.release(first);
    await backend.close();
  });
});

async function startEtcdOfItsOwn(): Promise<EtcdHandle> {
  return startEtcd({ own: true });
}

function once(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', resolve, { once: true });
  });
}
