import { type AddressInfo, createServer, type Socket } from 'node:net';
import { systemClock } from '@holdfast/core';
import { startZooKeeper, type ZooKeeperHandle, zooKeeperRequest } from '@holdfast/testbed';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { zookeeperBackend } from './backend.js';
import { CODE } from './errors.js';
import { FrameReader } from './frames.js';
import { FACTOR, PATIENCE, proxyTo, soon, Tenant, until } from './test-kit.js';

let server: ZooKeeperHandle;
beforeAll(async () => {
  server = await startZooKeeper();
});
afterAll(() => server.stop());

/** The operations in the chunks of one connection, in the order in which they were sent. */
class Sent {
  readonly operations: number[] = [];
  readonly #frames = new FrameReader();

  readonly note = (chunk: Buffer): boolean => {
    for (const frame of this.#frames.push(chunk)) {
      if (frame.length >= 12) this.operations.push(frame.readInt32BE(8));
    }
    return false;
  };

  /** How many, from that position on. */
  count(operation: number, from = 0): number {
    return this.operations.slice(from).filter((sent) => sent === operation).length;
  }
}

const CREATE = 1;
const EXISTS = 3;
const SET_DATA = 5;

describe('requests', () => {
  test('beyond a window wait here, and a heartbeat goes ahead of them', async () => {
    const proxy = await proxyTo(server.node);
    const sent = new Sent();
    proxy.observe(sent.note);
    const session = await new Tenant(proxy).session();
    const before = sent.operations.length;
    // An hour of patience: no request is taken back for want of an answer.
    const later = systemClock.now() + 3_600_000;

    const silence = proxy.blackHole('down');
    const asked = Array.from({ length: 1000 }, (_, index) => session.stat(`/none-${index}`, later));
    const beats = sent.count(SET_DATA);
    await until(() => sent.count(SET_DATA) > beats);
    expect(sent.count(EXISTS, before)).toBe(256);

    silence.heal();
    expect(await Promise.all(asked)).toEqual(Array(1000).fill(undefined));
    expect(sent.count(EXISTS, before)).toBe(1000);
  });

  test('that wait here are told when the connection goes, and are not sent on the next', async () => {
    const proxy = await proxyTo(server.node);
    const sent = new Sent();
    proxy.observe(sent.note);
    const session = await new Tenant(proxy).session();
    const before = sent.operations.length;
    const silence = proxy.blackHole('down');
    const asked = Array.from({ length: 300 }, (_, index) => session.make(`/late-${index}`, soon()));
    const settled = Promise.allSettled(asked);
    await until(() => sent.count(CREATE, before) === 256);
    proxy.reset();
    expect(await settled).toEqual(
      Array(300).fill({ status: 'rejected', reason: expect.objectContaining({ code: CODE.connectionLoss }) }),
    );
    silence.heal();
    expect(await session.whenReady(soon())).toBe(true);
    await session.heartbeat(soon());
    expect(sent.count(CREATE, before)).toBe(256);
    expect(await session.stat('/late-256', soon())).toBeUndefined();
  });

  test('that were sent end at their deadline, and those that wait here with the connection', async () => {
    const proxy = await proxyTo(server.node);
    const session = await new Tenant(proxy).session();
    const silence = proxy.blackHole('down');
    const soonest = systemClock.now() + 50;
    const asked = Array.from({ length: 300 }, (_, index) => session.make(`/never-${index}`, soonest));
    const settled = await Promise.allSettled(asked);
    expect(settled.at(0)).toMatchObject({ status: 'rejected', reason: { code: CODE.operationTimeout } });
    expect(settled.at(-1)).toMatchObject({ status: 'rejected', reason: { code: CODE.connectionLoss } });
    silence.heal();
    expect(await session.whenReady(soon())).toBe(true);
    await session.heartbeat(soon());
    expect(await session.stat('/never-299', soon())).toBeUndefined();
    expect(await session.stat('/never-0', soon())).toBeDefined();
  });

  test(
    'in thousands do not end the session, however slow the answers are',
    async () => {
      const proxy = await proxyTo(server.node);
      const session = await new Tenant(proxy).session();
      const { id } = session;
      proxy.delay({ down: session.timeout / 10 });
      const until = systemClock.now() + 10 * PATIENCE;
      await Promise.all(Array.from({ length: 5000 }, (_, index) => session.stat(`/none-${index}`, until)));
      expect([session.ready, session.id]).toEqual([true, id]);
    },
    20 * PATIENCE,
  );

  test('that wait here hold up no end of their session, whose server says nothing', async () => {
    const patient = await startZooKeeper({ own: true, config: { maxSessionTimeout: 60_000 } });
    onTestFinished(() => patient.stop());
    const proxy = await proxyTo(patient.node);
    const backend = zookeeperBackend({ url: `zookeeper://${proxy.address}`, sessionTimeout: 60_000 });
    const host = { clock: systemClock, lost: () => undefined, report: () => undefined };
    await backend.open({ ...host, commandTimeout: 1000 * FACTOR });
    const claim = { name: 'k', owner: 'test:1', ttl: 60_000, queue: false, renew: false };
    // The lock's node is to be removed with the session.
    await backend.attempt(claim);
    await backend.release(claim);

    proxy.blackHole();
    const looks = Array.from({ length: 300 }, () => backend.inspect('k').catch((error: Error) => error));
    const began = performance.now();
    await backend.close();
    expect(performance.now() - began).toBeLessThan(10_000 * FACTOR);
    for (const look of await Promise.all(looks)) expect(look).toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
  });
});

describe('a connection', () => {
  test('that a server has no room for is refused with a hint at the limit', async () => {
    const full = await startZooKeeper({ own: true, config: { maxClientCnxns: 1 } });
    onTestFinished(() => full.stop());
    const session = await new Tenant(full.node).session();
    const backend = zookeeperBackend({ url: full.url });
    onTestFinished(() => backend.close());
    const clock = systemClock;
    await expect(
      backend.open({ clock, commandTimeout: 2000 * FACTOR, lost: () => {}, report: () => {} }),
    ).rejects.toMatchObject({
      code: 'BACKEND_UNAVAILABLE',
      message: expect.stringContaining('maxClientCnxns'),
    });
    expect(session.ready).toBe(true);
  });
});

test('a server that cuts the connection off before it has read the handshake is understood alike', async () => {
  const port = await listening((socket) => socket.once('data', () => socket.resetAndDestroy()));
  const backend = zookeeperBackend({ url: `zookeeper://127.0.0.1:${port}` });
  onTestFinished(() => backend.close());
  await expect(
    backend.open({ clock: systemClock, commandTimeout: 200 * FACTOR, lost: () => {}, report: () => {} }),
  ).rejects.toMatchObject({
    code: 'BACKEND_UNAVAILABLE',
    message: expect.stringContaining('maxClientCnxns'),
  });
});

/** A server of no protocol, for the length of the test. */
async function listening(onConnection: (socket: Socket) => void): Promise<number> {
  const listener = createServer(onConnection);
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => new Promise((resolve) => listener.close(() => resolve())));
  return (listener.address() as AddressInfo).port;
}

describe('a listing', () => {
  test('that many ask for at once is asked for once', async () => {
    const proxy = await proxyTo(server.node);
    const session = await new Tenant(proxy).session();
    const listings = proxy.observe(zooKeeperRequest('getChildren2', '/'));
    const answers = await Promise.all(Array.from({ length: 100 }, () => session.children('/', soon())));
    expect(listings.hits).toBe(1);
    expect(new Set(answers).size).toBe(1);
  });
});
