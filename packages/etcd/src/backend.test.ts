import type { BackendHost, Claim, Grant } from '@holdfast/core';
import { systemClock } from '@holdfast/core';
import { type EtcdHandle, type FaultProxy, http2Answer, startEtcd, startProxy } from '@holdfast/testbed';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { EtcdBackend } from './backend.js';
import { etcdBackend } from './module.js';
import { Admin, FACTOR, fresh, pause, until } from './test-kit.js';

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

/** A backend without core above it; it ends with its scope. */
async function bare(
  address = server.node.address,
  lost: BackendHost['lost'] = () => undefined,
): Promise<EtcdBackend & AsyncDisposable> {
  const backend = etcdBackend({ hosts: address });
  await backend.open({ clock: systemClock, commandTimeout: 2_000 * FACTOR, lost, report: () => undefined });
  return Object.assign(backend, { [Symbol.asyncDispose]: () => backend.close() });
}

function claim(more: Partial<Claim> = {}): Claim {
  return { name: fresh(), owner: `test:${fresh('owner')}`, ttl: 30_000, queue: true, renew: true, ...more };
}

async function hold(backend: EtcdBackend, more: Partial<Claim> = {}): Promise<Grant> {
  const answer = await backend.attempt(claim(more));
  if (!('fencingToken' in answer)) throw new Error('contended');
  return answer;
}

describe('validity', () => {
  it('counts from when the lease was asked for, however long the answer took', async () => {
    await using backend = await bare(proxy.address);
    await hold(backend);
    proxy.delay({ down: 600 });
    const before = systemClock.now();
    const grant = await hold(backend, { ttl: 9_000, renew: false });
    expect(systemClock.now() - before).toBeGreaterThan(600);
    expect(grant).toMatchObject({ ttl: 9_000, validFor: 9_000 });
    expect(grant.from).toBeLessThanOrEqual(systemClock.now() - 600);
  });

  it('counts from when the keep-alive was sent', async () => {
    await using backend = await bare(proxy.address);
    const grant = await hold(backend);
    proxy.delay({ down: 600 });
    const [renewal] = await backend.renew([grant]);
    expect(renewal).toMatchObject({ renewed: true, ttl: 30_000 });
    expect((renewal as { from: number }).from).toBeLessThanOrEqual(systemClock.now() - 600);
    expect((renewal as { from: number }).from).toBeGreaterThan(grant.from ?? 0);
  });

  it('of a grant is nearly whole, however old the shared lease is', async () => {
    await using backend = await bare();
    await hold(backend, { ttl: 9_000 });
    await pause(2_500);
    const before = systemClock.now();
    const grant = await hold(backend, { ttl: 9_000 });
    expect(grant.from).toBeGreaterThanOrEqual(before);
  });

  it('is at the server what it is here', async () => {
    await using backend = await bare();
    const grant = await hold(backend, { ttl: 3_000, renew: false });
    const gone = until(async () => (await admin.keys(`holdfast/${grant.claim.name}/`)).length === 0);
    await gone;
    expect(systemClock.now()).toBeGreaterThanOrEqual((grant.from ?? Infinity) + 3_000);
  });
});

describe('a renewal', () => {
  it('of many holds answers each in its place, and costs one keep-alive', async () => {
    await using backend = await bare();
    const grants = await Promise.all(Array.from({ length: 250 }, () => hold(backend)));
    const forced = grants[137];
    await backend.forceRelease(forced?.claim.name ?? '');
    const renewals = await backend.renew(grants);
    expect(renewals.map(({ renewed }) => renewed)).toEqual(grants.map((grant) => grant !== forced));
    const leases = new Set(await Promise.all(grants.map(({ claim: { name } }) => leaseOf(name))));
    leases.delete('0');
    expect(leases.size).toBe(1);
  });

  it('does not make what has gone', async () => {
    await using backend = await bare();
    const grant = await hold(backend);
    await admin.client.delete().prefix(`holdfast/${grant.claim.name}/`).exec();
    expect(await backend.renew([grant])).toEqual([{ renewed: false }]);
    expect(await backend.extend(grant, 60_000)).toEqual({ renewed: false });
    expect(await admin.keys(`holdfast/${grant.claim.name}/`)).toEqual([]);
    expect(backend.kept.claims).toBe(0);
  });

  it('finds a key that has moved to another lease by a request whose answer was lost', async () => {
    await using backend = await bare(proxy.address);
    const grant = await hold(backend);
    const other = await hold(backend, { ttl: 60_000 });
    const fault = proxy.dropAnswerTo(grant.claim.name, { answer: http2Answer, times: 1 });
    // The first request with the key reads it; the one after that moves it.
    const first = await backend.extend(grant, 60_000);
    expect(fault.hits).toBe(1);
    const again = first.renewed === true ? first : await backend.extend(grant, 60_000);
    expect(again).toMatchObject({ renewed: true, ttl: 60_000 });
    expect(await leaseOf(grant.claim.name)).toBe(await leaseOf(other.claim.name));
    expect(await backend.release(grant.claim)).toBe(true);
  });

  it('with a shorter ttl takes effect at the server once it shortens nothing', async () => {
    await using backend = await bare();
    const long = await hold(backend, { ttl: 6_000 });
    expect(await backend.extend(long, 2_000)).toMatchObject({ renewed: true, ttl: 2_000, validFor: 2_000 });
    const short = { ...long, ttl: 2_000 };
    expect((await backend.inspect(long.claim.name)).expiresIn).toBeGreaterThan(2_000);
    await until(async () => {
      const [renewal] = await backend.renew([short]);
      expect(renewal).toMatchObject({ renewed: true, ttl: 2_000 });
      const { expiresIn = 0 } = await backend.inspect(long.claim.name);
      await pause(300);
      return expiresIn <= 2_000;
    });
    expect((await backend.inspect(long.claim.name)).fencingToken).toBe(long.fencingToken);
  });
});

describe('a hold that changes hands', () => {
  it('is out of reach of its first owner', async () => {
    await using a = await bare();
    await using b = await bare();
    const first = await hold(a);
    const second = await b.adopt(first, 'test:adopter');
    expect(second).toMatchObject({ fencingToken: first.fencingToken, claim: { owner: 'test:adopter' } });
    expect(await a.adopt(first, 'test:latecomer')).toBeUndefined();
    expect(await a.renew([first])).toEqual([{ renewed: false }]);
    expect(await a.release(first.claim)).toBe(false);
    expect(await a.verify(first)).toBe(false);
    expect(await b.inspect(first.claim.name)).toMatchObject({ held: true, owner: 'test:adopter' });
    expect(await b.release((second as Grant).claim)).toBe(true);
  });

  it('does not depend on the process that gave it away', async () => {
    const a = await bare();
    await using b = await bare();
    const first = await hold(a, { ttl: 5_000 });
    await a.detach(first);
    await a.close();
    expect(await b.inspect(first.claim.name)).toMatchObject({ held: true, owner: first.claim.owner });
    const before = await admin.leases();
    const second = await b.adopt(first, 'test:adopter');
    expect(second?.fencingToken).toBe(first.fencingToken);
    expect(await b.adopt(first, 'test:adopter')).toEqual(
      expect.objectContaining({ fencingToken: first.fencingToken }),
    );
    // The lease that carried it on the way is not left to lapse.
    await until(async () => (await admin.leases()).every((id) => !before.includes(id)));
    await b.release((second as Grant).claim);
  });
});

describe('a tail', () => {
  it('ends when it should, though leases count in seconds', async () => {
    await using backend = await bare();
    const grant = await hold(backend);
    const started = systemClock.now();
    expect(await backend.release(grant.claim, { keepFor: 400 })).toBe(true);
    expect(await backend.inspect(grant.claim.name)).toMatchObject({ held: true, waiters: [] });
    expect((await backend.inspect(grant.claim.name)).owner).toBeUndefined();
    await until(async () => !(await backend.inspect(grant.claim.name)).held);
    expect(systemClock.now() - started).toBeGreaterThanOrEqual(400);
    expect(systemClock.now() - started).toBeLessThan(1_500 * FACTOR);
  });

  it('outlives the process', async () => {
    const a = await bare();
    await using b = await bare();
    const grant = await hold(a);
    await a.release(grant.claim, { keepFor: 3_000 });
    await a.close();
    expect(await b.inspect(grant.claim.name)).toMatchObject({ held: true });
    expect(await b.attempt(claim({ name: grant.claim.name, queue: false }))).not.toHaveProperty(
      'fencingToken',
    );
    await until(async () => !(await b.inspect(grant.claim.name)).held);
  });

  it('that is forced leaves no lease', async () => {
    await using backend = await bare();
    const before = await admin.leases();
    const grant = await hold(backend);
    await backend.release(grant.claim, { keepFor: 60_000 });
    expect(await backend.forceRelease(grant.claim.name)).toBe(true);
    await until(async () => (await admin.leases()).length <= before.length);
  });
});

describe('nothing is kept', () => {
  it('of names that came and went', async () => {
    await using backend = await bare();
    for (let round = 0; round < 5; round++) {
      const grants = await Promise.all(Array.from({ length: 100 }, () => hold(backend)));
      await Promise.all(grants.map((grant) => backend.release(grant.claim)));
    }
    await until(() => backend.kept.leases === 0);
    expect(backend.kept).toEqual({ claims: 0, leases: 0, watches: 0 });
    expect(await admin.keys('holdfast/lock-')).toEqual([]);
  });

  it('of a claim that cannot be given back, once its lease has gone', async () => {
    const told: string[] = [];
    await using backend = await bare(proxy.address, (owner) => told.push(owner));
    const grant = await hold(backend, { ttl: 2_000 });
    const fault = proxy.blackHole();
    await expect(backend.release(grant.claim)).rejects.toThrow();
    await until(async () => (await admin.keys(`holdfast/${grant.claim.name}/`)).length === 0);
    fault.heal();
    await until(() => backend.kept.claims === 0);
    expect(told).toEqual([]);
  });

  it('of one that was let lapse, though others whose lease it shared go on', async () => {
    await using backend = await bare();
    const grant = await hold(backend, { ttl: 2_000 });
    const other = await hold(backend, { ttl: 2_000 });
    expect(await leaseOf(other.claim.name)).toBe(await leaseOf(grant.claim.name));
    backend.letLapse(grant.claim);
    expect(backend.kept.claims).toBe(1);
    await until(async () => {
      expect(await backend.renew([other])).toMatchObject([{ renewed: true }]);
      return (await admin.keys(`holdfast/${grant.claim.name}/`)).length === 0;
    });
    expect(await backend.release(other.claim)).toBe(true);
  });
});

async function leaseOf(name: string): Promise<string> {
  const { kvs } = await admin.client.getAll().prefix(`holdfast/${name}/`).exec();
  return kvs[0]?.lease ?? '0';
}
