import { type BackendHost, type Claim, type Grant, type LockBackend, systemClock } from '@holdfast/core';
import { type EtcdHandle, startEtcd } from '@holdfast/testbed';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { etcdBackend } from './module.js';
import { FACTOR, fresh } from './test-kit.js';

let server: EtcdHandle;

beforeAll(async () => {
  server = await startEtcd({ own: true });
});

afterAll(() => server.stop());

const HOST: BackendHost = {
  clock: systemClock,
  // Long: what this machine needs for so many is no question of the test.
  commandTimeout: 20_000 * FACTOR,
  lost: () => undefined,
  report: () => undefined,
};

async function bare(): Promise<LockBackend & AsyncDisposable> {
  const backend = etcdBackend({ hosts: server.hosts });
  await backend.open(HOST);
  return Object.assign(backend, { [Symbol.asyncDispose]: () => backend.close() });
}

function claim(name: string, metadata?: string): Claim {
  const more = metadata === undefined ? {} : { metadata };
  return { name, owner: `test:${fresh('owner')}`, ttl: 30_000, queue: false, renew: true, ...more };
}

/** Requests that the server has begun to carry out. */
async function transactions(): Promise<number> {
  const text = await (await fetch(`http://${server.node.address}/metrics`)).text();
  return Number(/^grpc_server_started_total\{grpc_method="Txn".*\} (\S+)$/m.exec(text)?.[1] ?? 0);
}

describe('what many ask for in the same moment', () => {
  it('is granted, and taken back, without drowning the server', { timeout: 120_000 * FACTOR }, async () => {
    await using backend = await bare();
    const claims = Array.from({ length: 5_000 }, () => claim(fresh()));
    const before = await transactions();
    const outcomes = await Promise.all(claims.map((one) => backend.attempt(one)));
    expect(outcomes.filter((outcome) => !('fencingToken' in outcome))).toEqual([]);
    const released = await Promise.all(claims.map((one) => backend.release(one)));
    expect(released.filter((answer) => !answer)).toEqual([]);
    // 128 of each leave before anything waits, the others by the hundred.
    expect((await transactions()) - before).toBeLessThan(2 * (128 + 4_872 / 10));
  });

  it('is granted to one where several want the same', async () => {
    await using backend = await bare();
    const names = Array.from({ length: 1_000 }, () => fresh());
    const outcomes = await Promise.all([...names, ...names].map((name) => backend.attempt(claim(name))));
    const granted = outcomes.filter((outcome): outcome is Grant => 'fencingToken' in outcome);
    expect(granted.map((grant) => grant.claim.name).sort()).toEqual([...names].sort());
  });

  it('is refused to the one alone that the server does not like', async () => {
    await using backend = await bare();
    const tooLong = claim(fresh(), 'x'.repeat(2_000_000));
    const claims = Array.from({ length: 600 }, (_, index) => (index === 300 ? tooLong : claim(fresh())));
    const outcomes = await Promise.allSettled(claims.map((one) => backend.attempt(one)));
    const refused = claims.filter((_, index) => outcomes[index]?.status === 'rejected');
    expect(refused).toEqual([tooLong]);
    expect(outcomes[300]).toMatchObject({ reason: { code: 'BACKEND_REFUSED' } });
  });
});
