import { startEtcd, startEtcdCluster } from '@holdfast/testbed';
import { describe, expect, it } from 'vitest';
import { Admin, FACTOR, fresh, open, timed } from './test-kit.js';

describe('a diagnosis', () => {
  it('of one node says that it stands alone, and whether its version is safe', async () => {
    await using server = await startEtcd();
    await using a = await open({ url: server.url });
    const facts = await a.backend.diagnose();
    expect(facts).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ id: 'etcd-members', level: 'warning' }),
        expect.objectContaining({ id: 'etcd-alarm', level: 'ok' }),
        expect.objectContaining({ id: 'etcd-member', level: 'ok' }),
        expect.objectContaining({
          id: 'etcd-version',
          finding: expect.stringMatching(/is etcd 3\.\d+\.\d+/),
        }),
      ]),
    );
  });

  it('of three nodes finds the one that is down', async () => {
    await using servers = await startEtcdCluster({ own: true });
    await using a = await open({ url: servers.url });
    await servers.nodes[1]?.kill();
    const facts = await a.backend.diagnose();
    const sick = facts.filter(({ id, level }) => id === 'etcd-member' && level !== 'ok');
    expect(sick).toEqual([
      expect.objectContaining({ finding: expect.stringContaining(servers.nodes[1]?.address ?? '?') }),
    ]);
    expect(facts).toContainEqual(expect.objectContaining({ id: 'etcd-members', level: 'ok' }));
  });

  it('finds a database that is full; locks can be given back, and not taken, which is no contention', async () => {
    await using server = await startEtcd({
      own: true,
      flags: { 'quota-backend-bytes': String(2 * 1024 * 1024) },
    });
    await using a = await open({ url: server.url });
    using admin = new Admin(server.hosts);
    const hold = await a.locks.lock(fresh()).acquire({ ttl: '3s' });
    const filled = await timed(fill(admin));
    expect(filled.error).toBeDefined();
    expect(await a.backend.diagnose()).toContainEqual(
      expect.objectContaining({ id: 'etcd-alarm', level: 'danger' }),
    );
    expect(await hold.verify()).toBe(true);
    const { error, ms } = await timed(a.locks.lock(fresh()).acquire({ wait: '1s' }));
    expect(error).toMatchObject({ code: expect.stringMatching(/^BACKEND_/), cause: expect.anything() });
    expect(ms).toBeLessThan(1_000 + 1_000 * FACTOR);
    expect(await hold.release()).toBe(true);
  });
});

async function fill(admin: Admin): Promise<void> {
  const value = 'x'.repeat(500_000);
  for (let count = 0; count < 20; count++) await admin.client.put(`filler/${count}`).value(value).exec();
}
