import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { systemClock } from '@holdfast/core';
import {
  type FaultProxy,
  startProxy,
  startZooKeeper,
  type ZooKeeperHandle,
  zooKeeperRequest,
} from '@holdfast/testbed';
import ConnectionManager from 'node-zookeeper-client/lib/ConnectionManager.js';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { CODE, toBackendError, ZooKeeperError } from './errors.js';
import { readOptions, type ZooKeeperBackendOptions } from './options.js';
import { type Session, Sessions } from './session.js';

const SESSION = 2000;
/** Far beyond what anything here should take. */
const PATIENCE = 20_000;

let server: ZooKeeperHandle;
beforeAll(async () => {
  server = await startZooKeeper({ own: true, config: { enforceQuota: 'true' } });
});
afterAll(() => server.stop());

const soon = (): number => systemClock.now() + PATIENCE;

async function proxied(): Promise<FaultProxy> {
  const proxy = await startProxy({ target: server.node });
  onTestFinished(() => proxy.stop());
  return proxy;
}

let tenants = 0;

function open(...given: (Partial<ZooKeeperBackendOptions> | { address: string })[]) {
  const addresses = given.flatMap((each) => ('address' in each ? [each.address] : []));
  const settings = readOptions({
    url: `zookeeper://${addresses.length === 0 ? server.node.address : addresses.join(',')}`,
    sessionTimeout: SESSION,
    prefix: `session-${tenants++}`,
    ...given.find((each) => !('address' in each)),
  });
  const ended: Session[] = [];
  const sessions = new Sessions(
    { ...settings, home: `${settings.root}/sessions`, commandTimeout: PATIENCE },
    systemClock,
    (session) => ended.push(session),
  );
  onTestFinished(() => sessions.close(systemClock.now() + SESSION));
  return { sessions, ended, root: settings.root, ready: () => sessions.ready(soon()) };
}

const until = (isSo: () => boolean): Promise<void> =>
  vi.waitFor(() => expect(isSo()).toBe(true), { timeout: PATIENCE, interval: 5 });

describe('a connection', () => {
  test('to a server that accepts and never says a word is given up, and tried again', async () => {
    const proxy = await proxied();
    const silence = proxy.blackHole();
    const { sessions, ready } = open(proxy);
    await expect(sessions.ready(systemClock.now() + SESSION)).rejects.toMatchObject({
      code: CODE.connectionLoss,
      cause: { message: expect.stringMatching(/^no handshake/) },
    });
    silence.heal();
    expect((await ready()).timeout).toBe(SESSION);
  });

  test('is made to another server where one is away', async () => {
    const gone = await proxied();
    await gone.refuse();
    const { ready } = open(gone, await proxied());
    expect((await ready()).ready).toBe(true);
  });

  test('that says nothing for two thirds of the session is given up for another, and the session goes on', async () => {
    const proxies = [await proxied(), await proxied()];
    const { ready, ended } = open(...proxies);
    const session = await ready();
    const { id } = session;
    proxies.find(({ connections }) => connections > 0)?.blackHole();
    await until(() => !session.ready);
    expect((await ready()).id).toBe(id);
    expect(ended).toEqual([]);
  });

  test('on which only the server is heard is given up as well', async () => {
    const proxy = await proxied();
    const { ready, root } = open(proxy);
    const session = await ready();
    const other = await open().ready();
    const paths = Array.from({ length: 100 }, (_, index) => `${root}/n${index}`);
    for (const path of paths) await session.make(path, soon());
    let heard = 0;
    for (const path of paths) await session.watch(path, soon(), () => void heard++);

    proxy.blackHole('up');
    const notSent = systemClock.now();
    for (const path of paths) {
      if (!session.ready) break;
      await other.remove(path, soon());
      await new Promise((resolve) => setTimeout(resolve, SESSION / 20));
    }
    expect(session.ready).toBe(false);
    expect(heard).toBeGreaterThan(5);
    expect(session.validFrom).toBeLessThanOrEqual(notSent);
  });

  test('that breaks in the middle of a frame is made again, with the same session', async () => {
    const proxy = await proxied();
    const { ready, root, ended } = open(proxy);
    const session = await ready();
    const { id } = session;
    proxy.cutAnswerTo(zooKeeperRequest('getChildren2', root), { bytes: 11 });
    await expect(session.children(root, soon())).rejects.toMatchObject({ code: CODE.connectionLoss });
    const again = await ready();
    expect(again.id).toBe(id);
    expect(await again.children(root, soon())).toEqual(['sessions']);
    expect(ended).toEqual([]);
  });

  test('ends with its watches, each of which is called', async () => {
    const proxy = await proxied();
    const { ready, root } = open(proxy);
    const session = await ready();
    const calls: string[] = [];
    await session.watch(root, soon(), () => calls.push(`called, ready: ${session.ready}`));
    proxy.reset();
    await until(() => calls.length > 0);
    await ready();
    expect(calls).toEqual(['called, ready: false']);
  });

  test('to what is not ZooKeeper is refused at once', async () => {
    const stranger = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    onTestFinished(() => void stranger.close());
    stranger.listen(0, '127.0.0.1');
    await once(stranger, 'listening');
    const { ready } = open({ address: `127.0.0.1:${(stranger.address() as AddressInfo).port}` });
    const error: unknown = await ready().catch((reason: unknown) => reason);
    expect(toBackendError(error, 'be reached')).toMatchObject({
      code: 'BACKEND_REFUSED',
      transient: false,
      message: expect.stringContaining('check the port'),
    });
  });

  test('reaches an IPv6 address', async () => {
    const relay = createServer((socket) => {
      const onward = connect(server.node.port, server.node.host);
      socket.pipe(onward).pipe(socket);
      onward.on('error', () => socket.destroy());
      socket.on('error', () => onward.destroy());
    });
    onTestFinished(() => void relay.close());
    relay.listen(0, '::1');
    await once(relay, 'listening');
    const { ready } = open({ address: `[::1]:${(relay.address() as AddressInfo).port}` });
    expect((await ready()).ready).toBe(true);
  });
});

describe('a request', () => {
  test('without an answer ends at its deadline', async () => {
    const proxy = await proxied();
    const { ready, root } = open(proxy);
    const session = await ready();
    proxy.holdAnswerTo(zooKeeperRequest('getData', root));
    await expect(session.read(root, systemClock.now() + 50)).rejects.toMatchObject({
      code: CODE.operationTimeout,
    });
  });

  test('is not kept for later while there is no connection', async () => {
    const proxy = await proxied();
    const { ready, root } = open(proxy);
    const session = await ready();
    proxy.reset();
    await until(() => !session.ready);
    await expect(session.make(`${root}/late`, soon())).rejects.toMatchObject({ code: CODE.connectionLoss });
    const again = await ready();
    await again.heartbeat(soon());
    expect(await again.stat(`${root}/late`, soon())).toBeUndefined();
  });

  test('that is answered with a code unknown to the client fails alone', async () => {
    const { ready, root, ended } = open();
    const session = await ready();
    // A hard limit on the number of nodes, as `setquota -N 2` writes it.
    const quota = `/zookeeper/quota${root}`;
    await session.makePath(quota, soon());
    await session.make(`${quota}/zookeeper_stats`, soon());
    await session.write(`${quota}/zookeeper_stats`, Buffer.from('count=2,bytes=0'), soon());
    await session.make(`${quota}/zookeeper_limits`, soon());
    await session.write(
      `${quota}/zookeeper_limits`,
      Buffer.from('count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=2'),
      soon(),
    );
    const refusals = await Promise.allSettled(
      [1, 2, 3, 4].map((index) => session.make(`${root}/n${index}`, soon())),
    );
    const last = refusals.at(-1);
    expect(last).toMatchObject({ status: 'rejected', reason: { code: -125 } });
    expect(toBackendError((last as PromiseRejectedResult).reason, 'acquire')).toMatchObject({
      code: 'BACKEND_REFUSED',
      message: expect.stringContaining('quota exceeded'),
    });
    expect([session.ready, ended]).toEqual([true, []]);
  });

  test('is numbered from 1, and from 1 again before the number leaves 32 bits', async () => {
    const numbers: number[] = [];
    const original = ConnectionManager.prototype.queue;
    const queue = vi.spyOn(ConnectionManager.prototype, 'queue').mockImplementation(function (
      this: ConnectionManager,
      ...args
    ) {
      numbers.push(this.xid);
      original.apply(this, args);
      if (numbers.length === 3) this.xid = 0x7fff_fffe;
    });
    onTestFinished(() => queue.mockRestore());
    const { ready, root } = open();
    const session = await ready();
    await Promise.all(Array.from({ length: 5 }, () => session.stat(root, soon())));
    await session.heartbeat(soon());
    expect(numbers[0]).toBe(1);
    expect(numbers).toContain(0x7fff_fffe);
    expect(Math.max(...numbers)).toBeLessThan(0x7fff_ffff);
  });

  test('of the first connection goes out behind the credentials', async () => {
    const proxy = await proxied();
    const { ready, root } = open(proxy, { auth: 'alice:secret' });
    const session = await ready();
    proxy.reset();
    await until(() => !session.ready);
    expect(await (await ready()).children(`${root}/sessions`, soon())).toHaveLength(1);

    const stranger = await open().ready();
    const refusal: unknown = await stranger.children(root, soon()).catch((reason: unknown) => reason);
    expect(refusal).toBeInstanceOf(ZooKeeperError);
    const error = toBackendError(refusal, 'list locks');
    expect(error).toMatchObject({ code: 'BACKEND_REFUSED', transient: false });
    expect(error.message).toContain('not authorised');
  });

  test('makes the chroot where it is missing', async () => {
    const { ready, root } = open({ chroot: 'some/where' });
    const session = await ready();
    expect(root).toMatch(/^\/some\/where\/session-\d+$/);
    expect(await session.children(root, soon())).toEqual(['sessions']);
  });
});

describe('a session', () => {
  test('that expired is followed by another, and its owner is told', async () => {
    const proxy = await proxied();
    const { ready, ended, root } = open(proxy);
    const session = await ready();
    const { id } = session;
    let called = 0;
    await session.watch(root, soon(), () => void called++);
    const own = await session.children(`${root}/sessions`, soon());
    const other = await open().ready();
    const silence = proxy.blackHole();
    await vi.waitFor(
      async () => expect(await other.children(`${root}/sessions`, soon())).toEqual([]),
      PATIENCE,
    );
    silence.heal();
    await until(() => ended.length > 0);
    expect(ended).toEqual([session]);
    expect([session.ended, called]).toEqual([true, 1]);
    const next = await ready();
    expect(next.id).not.toBe(id);
    expect(await next.children(`${root}/sessions`, soon())).not.toEqual(own);
  });

  test('is valid from the last-but-one heartbeat, whatever was written since', async () => {
    const { ready } = open();
    const session = await ready();
    const start = session.validFrom;
    // Many at once prove nothing: no follower reports between them.
    for (let beat = 0; beat < 5; beat++) await session.heartbeat(soon());
    expect(session.validFrom).toBe(start);
    const sent = systemClock.now();
    await until(() => session.validFrom > start);
    expect(session.validFrom).toBeLessThanOrEqual(systemClock.now() - session.timeout / 4);
    await until(() => session.validFrom >= sent);
    expect(session.validFrom).toBeLessThanOrEqual(systemClock.now() - session.timeout / 4);
  });

  test('does not become more valid while no heartbeat is answered', async () => {
    const proxy = await proxied();
    const { ready } = open(proxy);
    const session = await ready();
    proxy.blackHole('down');
    const silent = systemClock.now();
    await until(() => !session.ready);
    expect(session.validFrom).toBeLessThanOrEqual(silent);
  });

  test('makes its own node again when somebody deletes it', async () => {
    const { ready, root, ended } = open();
    const session = await ready();
    const home = `${root}/sessions`;
    const [node] = (await session.children(home, soon())) ?? [];
    expect(await session.remove(`${home}/${node}`, soon())).toBeDefined();
    await session.heartbeat(soon());
    expect(await session.children(home, soon())).toEqual([node]);
    expect(ended).toEqual([]);
  });

  test('that is closed leaves no node and no connection', async () => {
    const proxy = await proxied();
    const { sessions, ready, root } = open(proxy);
    await ready();
    await sessions.close(soon());
    const other = await open().ready();
    expect(await other.children(`${root}/sessions`, soon())).toEqual([]);
    await until(() => proxy.connections === 0);
  });

  test('that is closed while the connection is away waits for it', async () => {
    const proxy = await proxied();
    const { sessions, ready, root } = open(proxy);
    await ready();
    proxy.reset();
    await sessions.close(soon());
    expect(await (await open().ready()).children(`${root}/sessions`, soon())).toEqual([]);
  });

  test('that is closed as soon as it was asked for, or where nobody answers, ends all the same', async () => {
    const proxy = await proxied();
    const { sessions } = open(proxy);
    const ready = sessions.ready(soon()).catch((error: unknown) => error);
    await sessions.close(systemClock.now() + 100);
    expect(await ready).toBeInstanceOf(ZooKeeperError);

    const second = open(proxy);
    await second.ready();
    proxy.blackHole();
    await second.sessions.close(systemClock.now() + 100);
    await proxy.heal();
    await until(() => proxy.connections === 0);
  });
});
