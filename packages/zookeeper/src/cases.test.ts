import { type Claim, connect, type Locks } from '@holdfast/core';
import {
  endZooKeeperSession,
  startZooKeeper,
  type ZooKeeperHandle,
  zooKeeperRequest,
  zooKeeperSessions,
} from '@holdfast/testbed';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { zookeeperBackend } from './backend.js';
import { zookeeper } from './module.js';
import { encodeName, inOrder, nodePrefix } from './names.js';
import {
  FACTOR,
  fourLetterWord,
  PATIENCE,
  proxyTo,
  SESSION,
  soon,
  Tenant,
  until,
  whenWaiting,
} from './test-kit.js';

let server: ZooKeeperHandle;
beforeAll(async () => {
  server = await startZooKeeper({ own: true, config: { maxSessionTimeout: 60_000 } });
});
afterAll(() => server.stop());

const lossOf = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason), { once: true }));

/** The lock's node is there from now on, so that the next request is the create of a claim's. */
const warmUp = (locks: Locks): Promise<void> => locks.lock('k').run(() => undefined);

describe('a lost answer', () => {
  test('zk-ghost-create: to the create is no lost lock, and leaves no second node', async () => {
    const tenant = new Tenant(server.node);
    const proxy = await proxyTo(server.node);
    const a = await tenant.locks([proxy]);
    const b = await tenant.locks();
    await warmUp(a);
    const dropped = proxy.dropAnswerTo(zooKeeperRequest('create', `${tenant.lockPath('k')}/`));
    const mine = await a.lock('k').acquire();
    expect(dropped.hits).toBe(1);
    const queued = whenWaiting(b, 'k');
    const theirs = b.lock('k').acquire();
    await queued;
    expect(await tenant.children('k')).toHaveLength(2);
    expect((await a.inspect('k')).fencingToken).toBe(mine.fencingToken);
    expect(await mine.release()).toBe(true);
    expect((await theirs).fencingToken).toBeGreaterThan(mine.fencingToken);
  });

  test('to the create of a try that is refused leaves nothing', async () => {
    const tenant = new Tenant(server.node);
    const proxy = await proxyTo(server.node);
    const a = await tenant.locks();
    const b = await tenant.locks([proxy]);
    await warmUp(b);
    await a.lock('k').acquire();
    proxy.dropAnswerTo(zooKeeperRequest('create', `${tenant.lockPath('k')}/`));
    expect(await b.lock('k').tryAcquire()).toBeNull();
    expect(await tenant.children('k')).toHaveLength(1);
  });

  test('to the create, whose caller gives up before it is known, leaves nothing', async () => {
    const tenant = new Tenant(server.node);
    const proxy = await proxyTo(server.node);
    const a = await tenant.locks();
    const b = await tenant.locks([proxy]);
    await warmUp(b);
    await a.lock('k').acquire();
    const held = proxy.holdAnswerTo(zooKeeperRequest('create', `${tenant.lockPath('k')}/`));
    const given = new AbortController();
    const waiting = b.lock('k').acquire({ signal: given.signal });
    await held.hit;
    given.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    held.heal();
    await until(async () => (await tenant.children('k')).length === 1);
  });

  test('stale-release-deletes-newer: to the delete is a release, and a second one frees nobody else', async () => {
    const tenant = new Tenant(server.node);
    const proxy = await proxyTo(server.node);
    const a = await tenant.locks([proxy]);
    const first = await a.lock('k').acquire();
    const dropped = proxy.dropAnswerTo(zooKeeperRequest('delete', `${tenant.lockPath('k')}/`));
    expect(await first.release()).toBe(true);
    expect(dropped.hits).toBe(1);
    const second = await a.lock('k').acquire();
    expect(await first.release()).toBe(false);
    expect(await second.verify()).toBe(true);
    expect(await (await tenant.locks()).lock('k').tryAcquire()).toBeNull();
  });

  test('to the look at a node finds it at the next', async () => {
    const tenant = new Tenant(server.node);
    const proxy = await proxyTo(server.node);
    const a = await tenant.locks([proxy]);
    await warmUp(a);
    proxy.dropAnswerTo(zooKeeperRequest('create', `${tenant.lockPath('k')}/`));
    const look = proxy.dropAnswerTo(zooKeeperRequest('exists', `${tenant.lockPath('k')}/`));
    const hold = await a.lock('k').acquire();
    expect(look.hits).toBe(1);
    expect(await tenant.children('k')).toHaveLength(1);
    expect(await hold.verify()).toBe(true);
  });

  test('to the create is not resolved by a node of the same owner in another session', async () => {
    const tenant = new Tenant(server.node);
    const session = await tenant.session();
    await session.makePath(tenant.lockPath('k'), soon());
    const proxy = await proxyTo(server.node);
    const backend = zookeeperBackend({ url: proxy.url, prefix: tenant.prefix, sessionTimeout: SESSION });
    onTestFinished(() => backend.close());
    await backend.open();
    const claim = (owner: string): Claim => ({ name: 'k', owner, ttl: 30_000, queue: true, renew: true });
    const lost = async (owner: string): Promise<string> => {
      const path = `${tenant.lockPath('k')}/${nodePrefix(owner)}`;
      proxy.dropRequest(zooKeeperRequest('create', path));
      await expect(backend.attempt(claim(owner))).rejects.toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
      return (await session.createInLine(path, Buffer.alloc(0), soon())).path;
    };

    const first = await lost('asks again');
    expect(await backend.attempt(claim('asks again'))).toMatchObject({ position: 1 });
    const second = await lost('gives up');
    expect(await backend.release(claim('gives up'))).toBe(false);
    expect(await backend.release(claim('asks again'))).toBe(false);
    const left = inOrder(await tenant.children('k')).map(({ node }) => `${tenant.lockPath('k')}/${node}`);
    expect(left).toEqual([first, second]);
  });

  test('to the listing of a waiter costs it neither its place nor a second node', async () => {
    const tenant = new Tenant(server.node);
    const proxy = await proxyTo(server.node);
    const a = await tenant.locks();
    const b = await tenant.locks([proxy]);
    const hold = await a.lock('k').acquire();
    const queued = whenWaiting(b, 'k');
    const waiting = b.lock('k').acquire();
    await queued;
    const [, place] = inOrder(await tenant.children('k'));
    proxy.dropAnswerTo(zooKeeperRequest('getChildren2', tenant.lockPath('k')));
    await hold.release();
    const granted = await waiting;
    expect(await tenant.children('k')).toEqual([place?.node]);
    expect(await granted.verify()).toBe(true);
  });
});

describe('what is given up', () => {
  test('zk-timeout-node-left: a waiter that timed out or was aborted leaves no node', async () => {
    const tenant = new Tenant(server.node);
    const [a, b, c] = [await tenant.locks(), await tenant.locks(), await tenant.locks()];
    const hold = await a.lock('k').acquire();
    await expect(b.lock('k').acquire({ wait: 200 })).rejects.toMatchObject({
      code: 'LOCK_TIMEOUT',
      holder: { owner: hold.owner, since: expect.any(Date) },
    });
    const queued = whenWaiting(b, 'k');
    const given = new AbortController();
    const waiting = b.lock('k').acquire({ signal: given.signal });
    await queued;
    given.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    await until(async () => (await tenant.children('k')).length === 1);
    await hold.release();
    expect(await c.lock('k').tryAcquire()).not.toBeNull();
  });

  test('zk-nonblocking-cleanup: a refused try whose clean-up is cut off is cleaned up after the reconnect', async () => {
    const tenant = new Tenant(server.node);
    const proxy = await proxyTo(server.node);
    const [a, b, c] = [await tenant.locks(), await tenant.locks([proxy]), await tenant.locks()];
    const hold = await a.lock('k').acquire();
    const cut = proxy.dropRequest(zooKeeperRequest('delete', `${tenant.lockPath('k')}/`));
    expect(await b.lock('k').tryAcquire()).toBeNull();
    expect(cut.hits).toBe(1);
    await until(async () => (await tenant.children('k')).length === 1);
    await hold.release();
    expect(await c.lock('k').tryAcquire()).not.toBeNull();
  });

  test('zk-release-conn-loss, release-forgets-token: a release that failed goes on, and can be asked again', async () => {
    const tenant = new Tenant(server.node);
    const proxy = await proxyTo(server.node);
    const a = await tenant.locks([proxy], { commandTimeout: 300 });
    const hold = await a.lock('k').acquire();
    const refused = await proxy.refuse();
    proxy.reset();
    await expect(hold.release()).rejects.toMatchObject({ code: 'BACKEND_UNAVAILABLE', lockName: 'k' });
    refused.heal();
    await until(async () => (await tenant.children('k')).length === 0);
    expect(await hold.release()).toBe(true);
    expect(await (await tenant.locks()).lock('k').tryAcquire()).not.toBeNull();
  });
});

describe('a session', () => {
  test('zk-expiry-not-told: the holder that hears nothing knows its loss before the session can end', async () => {
    const tenant = new Tenant(server.node);
    const proxy = await proxyTo(server.node);
    const [a, b] = [await tenant.locks([proxy]), await tenant.locks()];
    const hold = await a.lock('k').acquire();
    const order: string[] = [];
    const lost = lossOf(hold.signal).then((reason) => {
      order.push('lost');
      return reason;
    });
    const next = b.lock('k').acquire();
    proxy.blackHole();
    const waiter = a.lock('other').acquire({ wait: 100 });
    await expect(waiter).rejects.toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
    await next;
    order.push('granted');
    expect(await lost).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    expect(order).toEqual(['lost', 'granted']);
  });

  test('that somebody else ended is a loss at once, and the waiters of that process join again', async () => {
    const tenant = new Tenant(server.node);
    const b = await tenant.locks();
    const held = await b.lock('held').acquire();
    const others = await zooKeeperSessions(server.node);
    const a = await tenant.locks();
    const hold = await a.lock('k').acquire({ ttl: '1h' });
    const lost = lossOf(hold.signal);
    const queued = whenWaiting(a, 'held');
    const waiting = a.lock('held').acquire();
    await queued;
    const [ours] = (await zooKeeperSessions(server.node)).filter((id) => !others.includes(id));
    await endZooKeeperSession(server.node, ours ?? 0n);
    expect(await lost).toMatchObject({ code: 'LOCK_LOST', reason: 'session' });
    expect(hold.isHeld()).toBe(false);
    expect(await hold.release()).toBe(false);
    await until(async () => (await tenant.children('held')).length === 2);
    await held.release();
    expect((await waiting).isHeld()).toBe(true);
    expect((await a.lock('k').acquire()).fencingToken).toBeGreaterThan(hold.fencingToken);
  });

  test('that ran out is a loss, and the waiters of that process join again', async () => {
    const tenant = new Tenant(server.node);
    const proxy = await proxyTo(server.node);
    const [a, b] = [await tenant.locks([proxy]), await tenant.locks()];
    const held = await b.lock('held').acquire();
    const hold = await a.lock('k').acquire({ ttl: '1h' });
    const lost = lossOf(hold.signal);
    const queued = whenWaiting(a, 'held');
    const waiting = a.lock('held').acquire();
    await queued;
    const silence = proxy.blackHole();
    await until(async () => (await tenant.children('k')).length === 0);
    silence.heal();
    expect(await lost).toMatchObject({ code: 'LOCK_LOST' });
    expect(hold.isHeld()).toBe(false);
    await until(async () => (await tenant.children('held')).length === 2);
    await held.release();
    expect((await waiting).isHeld()).toBe(true);
  });

  test(
    'zk-watch-leak: waiters that time out leave no watches behind',
    async () => {
      const tenant = new Tenant(server.node);
      const [a, b] = [await tenant.locks(), await tenant.locks()];
      const watches = async (): Promise<number> =>
        Number(/Total watches:(\d+)/.exec(await fourLetterWord(server.node, 'wchs'))?.[1]);
      const before = await watches();
      for (let round = 0; round < 10; round++) {
        const hold = await a.lock('k').acquire();
        const waits = Array.from({ length: 100 }, () => b.lock('k').acquire({ wait: 50 }));
        await Promise.allSettled(waits);
        await hold.release();
      }
      await until(async () => (await tenant.children('k')).length === 0);
      expect(await watches()).toBe(before);
    },
    60_000 * FACTOR,
  );
});

describe('the nodes', () => {
  test("zk-foreign-children: a stranger's children do not matter", async () => {
    const tenant = new Tenant(server.node);
    const session = await tenant.session();
    await session.makePath(`${tenant.lockPath('k')}/foo-bar`, soon());
    await session.makePath(`${tenant.lockPath('k')}/x`, soon());
    await session.makePath(`/${tenant.prefix}/locks/%zz`, soon());
    const a = await tenant.locks();
    expect(await a.lock('k').tryAcquire()).not.toBeNull();
    const names: string[] = [];
    for await (const { name } of a.list()) names.push(name);
    expect(names).toEqual(['k']);
  });

  test(
    'zk-parent-reaped: a parent that vanishes meanwhile is made again',
    async () => {
      const tenant = new Tenant(server.node);
      const reaper = await tenant.session();
      const all = await Promise.all(Array.from({ length: 5 }, () => tenant.locks()));
      let going = true;
      const reaping = (async () => {
        while (going) await reaper.remove(tenant.lockPath('k'), soon()).catch(() => undefined);
      })();
      let counter = 0;
      await Promise.all(
        all.flatMap((locks) =>
          Array.from({ length: 4 }, async () => {
            for (let round = 0; round < 25; round++) {
              await locks.lock('k').run(() => {
                counter += 1;
              });
            }
          }),
        ),
      );
      going = false;
      await reaping;
      expect(counter).toBe(500);
    },
    120_000 * FACTOR,
  );

  test(
    'zk-parents-pile-up, registry-grows: names that were used leave no node',
    async () => {
      const tenant = new Tenant(server.node);
      const a = await tenant.locks();
      const names = Array.from({ length: 1000 }, (_, index) => `name ${index}`);
      for (let start = 0; start < names.length; start += 100) {
        await Promise.all(names.slice(start, start + 100).map((name) => a.lock(name).run(() => undefined)));
      }
      await until(async () => (await tenant.parents()).length === 0);
    },
    60_000 * FACTOR,
  );

  test('that a process which died left are swept by the next', async () => {
    const tenant = new Tenant(server.node);
    const session = await tenant.session();
    for (let index = 0; index < 20; index++) await session.makePath(tenant.lockPath(`left ${index}`), soon());
    await session.makePath(`${tenant.lockPath('used')}/by-somebody`, soon());
    await tenant.locks();
    await until(async () => (await tenant.parents()).length === 1);
    expect(await tenant.parents()).toEqual([encodeName('used')]);
  });

  test('zk-no-leading-slash: a chroot is one place, however it is written', async () => {
    const { address } = server.node;
    const config = (chroot: string) => ({
      backend: 'zookeeper',
      zookeeper: { url: `zookeeper://${address}`, chroot, prefix: 'slashes', sessionTimeout: SESSION },
    });
    const hold = await (
      await connect(`zookeeper://${address}/here?prefix=slashes`, { backends: [zookeeper] })
    )
      .lock('k')
      .acquire();
    for (const chroot of ['here', '/here', '/here/', 'here/']) {
      const locks = await connect(config(chroot), { backends: [zookeeper] });
      expect((await locks.inspect('k')).owner).toBe(hold.owner);
      await locks.close();
    }
    await hold.release();
  });
});

describe('a waiter', () => {
  test('zk-watch-gap: whose predecessor goes while it is being looked at does not sleep', async () => {
    const tenant = new Tenant(server.node);
    const proxy = await proxyTo(server.node);
    const [a, b] = [await tenant.locks(), await tenant.locks([proxy])];
    const hold = await a.lock('k').acquire();
    const [node] = await tenant.children('k');
    const held = proxy.holdRequest(zooKeeperRequest('getChildren2', `${tenant.lockPath('k')}/${node}`));
    const waiting = b.lock('k').acquire();
    await held.hit;
    await hold.release();
    held.heal();
    expect((await waiting).isHeld()).toBe(true);
  });

  test('whose node is deleted by hand joins again at the end', async () => {
    const tenant = new Tenant(server.node);
    const [a, b, c] = [await tenant.locks(), await tenant.locks(), await tenant.locks()];
    const hold = await a.lock('k').acquire();
    const order: string[] = [];
    for (const [name, locks] of [['b', b] as const, ['c', c] as const]) {
      const queued = whenWaiting(locks, 'k');
      void locks.lock('k').run(() => void order.push(name));
      await queued;
    }
    const [, ofB] = inOrder(await tenant.children('k'));
    await (await tenant.session()).remove(`${tenant.lockPath('k')}/${ofB?.node}`, soon());
    await hold.release();
    await until(() => order.length === 2);
    expect(order).toEqual(['c', 'b']);
  });

  test(
    'of a thousand is woken once, when its turn has come',
    async () => {
      const tenant = new Tenant(server.node);
      const proxy = await proxyTo(server.node);
      const holder = await tenant.locks();
      const hold = await holder.lock('k').acquire();
      const crowd = await tenant.locks([proxy]);
      let waiting = 0;
      crowd.on('waiting', () => void waiting++);
      const order: number[] = [];
      const all = Array.from({ length: 1000 }, (_, index) =>
        crowd.lock('k').run(() => void order.push(index)),
      );
      await until(() => waiting === 1000);
      const listings = proxy.observe(zooKeeperRequest('getChildren2', tenant.lockPath('k')));
      await hold.release();
      await Promise.all(all);
      expect(order).toEqual(Array.from({ length: 1000 }, (_, index) => index));
      // One look for each hand-over.
      expect(listings.hits).toBeLessThanOrEqual(1000);
    },
    120_000 * FACTOR,
  );

  test('shows when it got the lock, not when it came', async () => {
    const tenant = new Tenant(server.node);
    const [a, b] = [await tenant.locks(), await tenant.locks()];
    const hold = await a.lock('k').acquire();
    const queued = whenWaiting(b, 'k');
    const waiting = b.lock('k', { metadata: 'kept' }).acquire();
    await queued;
    const came = (await a.inspect('k')).acquiredAt ?? new Date(Number.NaN);
    await new Promise((resolve) => setTimeout(resolve, 500));
    await hold.release();
    const granted = await waiting;
    await until(async () => {
      const { acquiredAt } = await a.inspect('k');
      return acquiredAt !== undefined && acquiredAt.getTime() - came.getTime() >= 500;
    });
    expect(await a.inspect('k')).toMatchObject({ owner: granted.owner, metadata: 'kept' });
  });
});

describe('a hold', () => {
  test('that is renewed hears at once that somebody forced it', async () => {
    const tenant = new Tenant(server.node);
    const [a, b] = [await tenant.locks(), await tenant.locks()];
    const renewed = new Promise((resolve) => a.on('renewed', resolve));
    const hold = await a.lock('k').acquire();
    await renewed;
    const lost = lossOf(hold.signal);
    expect(await b.forceRelease('k', { fencingToken: hold.fencingToken + 1n })).toBe(false);
    expect(await b.forceRelease('k', { fencingToken: hold.fencingToken })).toBe(true);
    expect(await lost).toMatchObject({ code: 'LOCK_LOST', reason: 'superseded' });
    expect(await hold.release()).toBe(false);
  });

  test('costs one request for its first renewal on a connection, and none for the next', async () => {
    const tenant = new Tenant(server.node);
    const proxy = await proxyTo(server.node);
    const a = await tenant.locks([proxy]);
    const holds = await Promise.all(Array.from({ length: 50 }, (_, index) => a.lock(`k${index}`).acquire()));
    const looks = proxy.observe(zooKeeperRequest('getChildren2', `/${tenant.prefix}/locks/`));
    const renewals = new Map<string, number>();
    a.on('renewed', ({ name = '' }) => void renewals.set(name, (renewals.get(name) ?? 0) + 1));
    await until(() => holds.every(({ name }) => (renewals.get(name) ?? 0) >= 3));
    // They travel together, so in far fewer packets than there are holds.
    expect(looks.hits).toBeLessThanOrEqual(25);
    await a.close();
  });

  test(
    'has the token that every look at it shows, on whatever way it was granted',
    async () => {
      const tenant = new Tenant(server.node);
      const [a, b] = [await tenant.locks(), await tenant.locks()];
      const tokens: [bigint, bigint | undefined][] = [];
      const work = async (index: number): Promise<void> => {
        for (let round = 0; round < 20; round++) {
          await (index % 2 === 0 ? a : b).lock(`k${index % 3}`).run(async ({ name, fencingToken }) => {
            tokens.push([fencingToken, (await a.inspect(name)).fencingToken]);
          });
        }
      };
      await Promise.all(Array.from({ length: 12 }, (_, index) => work(index)));
      expect(tokens).toHaveLength(240);
      expect(tokens.filter(([granted, shown]) => granted !== shown)).toEqual([]);
    },
    PATIENCE * 3,
  );
});
