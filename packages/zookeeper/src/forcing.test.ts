import { startZooKeeper, type ZooKeeperHandle, zooKeeperRequest } from '@holdfast/testbed';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { proxyTo, soon, Tenant, until, whenWaiting } from './test-kit.js';

let server: ZooKeeperHandle;
beforeAll(async () => {
  server = await startZooKeeper();
});
afterAll(() => server.stop());

test.each([
  ['whoever holds it', false],
  ['if the token is the expected one', true],
])(
  'a release by force, %s, is one although its answer was lost, and breaks nobody else',
  async (_, expecting) => {
    const tenant = new Tenant(server.node);
    const proxy = await proxyTo(server.node);
    const [a, c] = [await tenant.locks(), await tenant.locks()];
    const b = await tenant.locks([proxy]);
    const held = await a.lock('k').acquire();
    const queued = whenWaiting(c, 'k');
    const waiting = c.lock('k').acquire();
    await queued;
    const dropped = proxy.dropAnswerTo(zooKeeperRequest('multi', tenant.lockPath('k')));
    const expected = expecting ? { fencingToken: held.fencingToken } : undefined;
    expect(await b.forceRelease('k', expected)).toBe(true);
    expect(dropped.hits).toBe(1);
    expect(await held.verify()).toBe(false);
    const next = await waiting;
    expect(await next.verify()).toBe(true);

    expect(await b.forceRelease('k')).toBe(true);
    expect(await next.verify()).toBe(false);
    expect(await b.forceRelease('k')).toBe(false);
    // The marks have gone: what is left are the sessions' own nodes.
    const observer = await tenant.session();
    await until(async () => (await observer.children(`/${tenant.prefix}/sessions`, soon()))?.length === 3);
  },
);

test.each([
  ['arrives late', false],
  ['is lost', true],
])('a release by force that %s, of a lock whose holder gave it back first, is none', async (_, lost) => {
  const tenant = new Tenant(server.node);
  const proxy = await proxyTo(server.node);
  const a = await tenant.locks();
  const b = await tenant.locks([proxy]);
  const held = await a.lock('k').acquire();
  const kept = proxy.holdRequest(zooKeeperRequest('multi', tenant.lockPath('k')));
  const forced = b.forceRelease('k', { fencingToken: held.fencingToken });
  await kept.hit;
  expect(await held.release()).toBe(true);
  if (lost) proxy.reset();
  kept.heal();
  expect(await forced).toBe(false);
});
