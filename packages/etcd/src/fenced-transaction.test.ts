import { StaleTokenError } from '@holdfast/core';
import { type EtcdHandle, startEtcd } from '@holdfast/testbed';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fencedTransaction } from './fenced-transaction.js';
import { Admin, fresh, open } from './test-kit.js';

describe('a fenced transaction', () => {
  let server: EtcdHandle;
  let admin: Admin;

  beforeAll(async () => {
    server = await startEtcd();
    admin = new Admin(server.hosts);
  });

  afterAll(async () => {
    admin[Symbol.dispose]();
    await server.stop();
  });

  it('commits while the lock is held', async () => {
    await using a = await open({ hosts: server.hosts });
    const key = fresh('resource');
    const { client } = admin;
    await a.locks.lock(fresh()).run(async (hold) => {
      const put = { request_put: { key: Buffer.from(`${key}/2`), value: Buffer.from('2') } };
      const answers = await fencedTransaction(client, hold, [client.put(`${key}/1`).value('1'), put]);
      expect(answers).toHaveLength(2);
    });
    expect(await client.getAll().prefix(key).strings()).toEqual({ [`${key}/1`]: '1', [`${key}/2`]: '2' });
  });

  it('does nothing after the lock was released, lost, or taken by another', async () => {
    await using a = await open({ hosts: server.hosts });
    const key = fresh('resource');
    const { client } = admin;
    const write = (hold: Parameters<typeof fencedTransaction>[1]) =>
      fencedTransaction(client, hold, [client.put(key).value('stale')]);
    const name = fresh();
    const released = await a.locks.lock(name).acquire();
    await released.release();
    await expect(write(released)).rejects.toThrow(StaleTokenError);
    const forced = await a.locks.lock(name).acquire();
    await a.locks.forceRelease(name);
    const newer = await a.locks.lock(name).acquire();
    const error = await write(forced).catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      code: 'STALE_TOKEN',
      token: forced.fencingToken,
      newest: newer.fencingToken,
    });
    expect(await client.get(key).exists()).toBe(false);
    await write(newer);
    expect(await client.get(key).string()).toBe('stale');
  });

  it('follows a hold to whoever adopted it', async () => {
    await using a = await open({ hosts: server.hosts });
    await using b = await open({ hosts: server.hosts });
    const key = fresh('resource');
    const { client } = admin;
    const before = await a.locks.lock(fresh()).acquire();
    const after = await b.locks.adopt(before.serialize());
    expect(after.fencingToken).toBe(before.fencingToken);
    await expect(fencedTransaction(client, before, [client.put(key).value('x')])).rejects.toThrow(
      StaleTokenError,
    );
    await fencedTransaction(client, after, [client.put(key).value('y')]);
    expect(await client.get(key).string()).toBe('y');
  });

  it('goes by the prefix and the offset of the locks', async () => {
    await using a = await open({ hosts: server.hosts, prefix: 'shop' }, { fenceOffset: 1_000n });
    const key = fresh('resource');
    const { client } = admin;
    await using hold = await a.locks.lock(fresh()).acquire();
    const put = client.put(key).value('x');
    await expect(fencedTransaction(client, hold, [put])).rejects.toThrow(StaleTokenError);
    await expect(fencedTransaction(client, hold, [put], { prefix: 'shop' })).rejects.toThrow(StaleTokenError);
    await fencedTransaction(client, hold, [put], { prefix: 'shop', fenceOffset: 1_000n });
    expect(await client.get(key).string()).toBe('x');
  });
});
