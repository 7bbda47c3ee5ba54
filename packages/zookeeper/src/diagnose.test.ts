import type { Diagnosis } from '@holdfast/core';
import { startZooKeeper, startZooKeeperCluster, type ZooKeeperHandle } from '@holdfast/testbed';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { zookeeperBackend } from './backend.js';
import { FACTOR, SESSION } from './test-kit.js';

async function diagnosis(url: string, sessionTimeout = SESSION): Promise<Record<string, Diagnosis>> {
  const backend = zookeeperBackend({ url, sessionTimeout });
  onTestFinished(() => backend.close());
  await backend.open();
  const facts = (await backend.diagnose?.()) ?? [];
  return Object.fromEntries(facts.map((fact) => [fact.id, fact]));
}

describe('of a server that tells all, a diagnosis', () => {
  let server: ZooKeeperHandle;
  beforeAll(async () => {
    const config = { '4lw.commands.whitelist': '*', maxClientCnxns: 7, maxSessionTimeout: 4 * SESSION };
    server = await startZooKeeper({ own: true, config });
  });
  afterAll(() => server.stop());

  test('says that it stands alone, and how many connections it takes', async () => {
    const facts = await diagnosis(server.url);
    expect(facts['zookeeper-ensemble']).toMatchObject({
      level: 'warning',
      finding: expect.stringContaining('standalone'),
    });
    expect(facts['zookeeper-max-client-cnxns']).toMatchObject({
      level: 'info',
      finding: expect.stringContaining('7 connections'),
    });
    expect(facts['zookeeper-jute-maxbuffer']).toMatchObject({ level: 'info' });
  });

  test('compares the session timeout with what was asked for', async () => {
    expect((await diagnosis(server.url))['zookeeper-session-timeout']).toMatchObject({
      level: 'ok',
      finding: expect.stringContaining(`${SESSION} ms`),
    });
    expect((await diagnosis(server.url, 9 * SESSION))['zookeeper-session-timeout']).toMatchObject({
      level: 'warning',
      finding: expect.stringMatching(new RegExp(`${4 * SESSION} ms.*${9 * SESSION} ms`)),
      advice: expect.stringContaining('maxSessionTimeout'),
    });
  });
});

test('a diagnosis of a server that tells nothing says what it would need', async () => {
  await using server = await startZooKeeper({ own: true, config: { '4lw.commands.whitelist': 'ruok,srvr' } });
  const facts = await diagnosis(server.url);
  expect(facts['zookeeper-max-client-cnxns']).toMatchObject({
    level: 'info',
    advice: expect.stringContaining('"conf"'),
  });
});

test(
  'a diagnosis of three servers says so, also while one is away',
  async () => {
    await using servers = await startZooKeeperCluster({ own: true });
    expect((await diagnosis(servers.url))['zookeeper-ensemble']).toMatchObject({
      level: 'ok',
      finding: expect.stringContaining('of 3 servers'),
    });
    await servers.nodes[0]?.kill();
    expect((await diagnosis(servers.url))['zookeeper-ensemble']).toMatchObject({ level: 'ok' });
  },
  120_000 * FACTOR,
);
