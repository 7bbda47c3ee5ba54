import { createServer } from 'node:net';
import { isHoldfastError } from '@holdfast/core';
import { type EtcdHandle, startEtcd } from '@holdfast/testbed';
import { Etcd3 } from 'etcd3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Admin, FACTOR, fresh, open, pause, timed, until } from './test-kit.js';

const PASSWORD = 'hunter2 & co/@:';
const AUTH = { username: 'root', password: PASSWORD };

describe('a server with users', () => {
  let server: EtcdHandle;
  let admin: Admin;

  beforeAll(async () => {
    // The shortest life that etcd takes for a token.
    server = await startEtcd({ rootPassword: PASSWORD, authTokenTtl: 2 });
    admin = new Admin(server.hosts, AUTH);
  });

  afterAll(async () => {
    admin[Symbol.dispose]();
    await server.stop();
  });

  it('takes user and password from the URL, or beside it', async () => {
    for (const options of [{ url: server.url }, { hosts: server.hosts, ...AUTH }]) {
      await using a = await open(options);
      await a.locks.lock(fresh()).run(async (hold) => expect(await hold.verify()).toBe(true));
    }
  });

  it.each([
    ['a wrong password', { username: 'root', password: 'wrong-secret' }],
    ['an unknown user', { username: 'nobody', password: 'wrong-secret' }],
    ['no user', {}],
  ])('refuses %s at once, for good, and shows no password', async (_, auth) => {
    const { error, ms } = await timed(open({ hosts: server.hosts, ...auth }));
    expect(isHoldfastError(error, 'BACKEND_REFUSED')).toBe(true);
    expect((error as Error).cause).toBeInstanceOf(Error);
    expect(ms).toBeLessThan(2_000 * FACTOR);
    expect(`${error} ${JSON.stringify(error)} ${(error as Error).cause}`).not.toContain('wrong-secret');
  });

  it('refuses a user who may not write under the prefix', async () => {
    const { client } = admin;
    await client.role('readers').create();
    await client.role('readers').grant({ permission: 'Read', range: client.range({ prefix: 'holdfast/' }) });
    await client.user('reader').create('secret');
    await client.user('reader').addRole('readers');
    const { error } = await timed(open({ hosts: server.hosts, username: 'reader', password: 'secret' }));
    expect(error).toMatchObject({
      code: 'BACKEND_REFUSED',
      message: expect.stringContaining('permission denied'),
    });
  });

  it('serves a user who may read and write under the prefix and nowhere else', async () => {
    const { client } = admin;
    await client.role('tenants').create();
    await client.role('tenants').grant({ permission: 'Readwrite', range: client.range({ prefix: 'shop/' }) });
    await client.user('tenant').create('secret');
    await client.user('tenant').addRole('tenants');
    const auth = { hosts: server.hosts, username: 'tenant', password: 'secret' };
    await using a = await open({ ...auth, prefix: 'shop' });
    await using b = await open({ ...auth, prefix: 'shop' });
    const held = await a.locks.lock('x').acquire();
    const waiting = b.locks.lock('x').acquire({ wait: '10s' });
    await until(async () => (await a.locks.inspect('x')).waiters.length === 1);
    await held.extend('40s');
    expect(await held.verify()).toBe(true);
    const adopted = await b.locks.adopt(held.serialize());
    expect(await a.locks.forceRelease('x', { fencingToken: adopted.fencingToken })).toBe(true);
    const next = await waiting;
    const listed: string[] = [];
    for await (const { name } of a.locks.list()) listed.push(name);
    expect(listed).toEqual(['x']);
    expect(await next.release()).toBe(true);
    const tail = await b.locks.lock('y').acquire({ minHold: '1s', renew: false });
    expect(await tail.release()).toBe(true);
    expect(await a.locks.lock('y').tryAcquire()).toBeNull();
    await (await a.locks.lock('y').acquire({ wait: '10s' })).release();
    const facts = await a.backend.diagnose();
    expect(facts.map(({ id }) => id)).toEqual(expect.arrayContaining(['etcd-version', 'etcd-members']));
    expect((await timed(open(auth))).error).toMatchObject({ code: 'BACKEND_REFUSED' });
  });

  it.each(['a client of ours', 'a client that was handed in'])(
    'lets holds and waiters go on after the token of %s has expired',
    async (whose) => {
      const client = new Etcd3({ hosts: [...server.hosts], auth: AUTH });
      const options = whose === 'a client of ours' ? { hosts: server.hosts, ...AUTH } : { client };
      await using a = await open(options);
      await using b = await open(options);
      const name = fresh();
      const held = await a.locks.lock(name).acquire({ ttl: '3s' });
      const waiting = b.locks.lock(name).acquire({ wait: '60s' });
      await until(async () => (await a.locks.inspect(name)).waiters.length === 1);
      await pause(8_000);
      expect([held.isHeld(), await held.verify()]).toEqual([true, true]);
      expect((await a.locks.inspect(name)).waiters).toHaveLength(1);
      const released = performance.now();
      await held.release();
      const next = await waiting;
      expect(performance.now() - released).toBeLessThan(2_000 * FACTOR);
      await next.release();
      client.close();
    },
  );

  it('breaks a watch when the token expires, which costs time and no turn', async () => {
    await using a = await open({ url: server.url });
    await using b = await open({ url: server.url });
    await using c = await open({ url: server.url });
    const name = fresh();
    const held = await a.locks.lock(name).acquire();
    const first = b.locks.lock(name).acquire({ wait: '60s' });
    await until(async () => (await a.locks.inspect(name)).waiters.length === 1);
    // Its token is as old as its connection: its first watch is refused.
    await pause(3_000);
    const second = c.locks.lock(name).acquire({ wait: '60s' });
    await until(async () => (await a.locks.inspect(name)).waiters.length === 2);
    await held.release();
    await (await first).release();
    expect((await second).isHeld()).toBe(true);
  });
});

describe('a server with TLS', () => {
  let server: EtcdHandle;

  beforeAll(async () => {
    server = await startEtcd({ tls: true });
  });

  afterAll(() => server.stop());

  it('is reached with its authority, as a file or as text', async () => {
    const { ca = '', caFile = '' } = server.tls ?? {};
    for (const authority of [ca, caFile, Buffer.from(ca)]) {
      await using a = await open({ url: server.url, ca: authority });
      await a.locks.lock(fresh()).run(async (hold) => expect(await hold.verify()).toBe(true));
    }
  });

  it('is refused for good, at once, where its certificate is not trusted', async () => {
    const { error, ms } = await timed(open({ url: server.url }));
    expect(error).toMatchObject({ code: 'BACKEND_REFUSED' });
    expect(ms).toBeLessThan(2_000 * FACTOR);
  });

  it('says that it seems to speak TLS where none is expected', async () => {
    const { error } = await timed(open({ hosts: server.node.address }));
    expect(error).toMatchObject({
      code: 'BACKEND_UNAVAILABLE',
      message: expect.stringContaining('seems to speak TLS'),
    });
  });

  it('says that it seems not to where it is expected', async () => {
    const plain = await startEtcd({ own: true });
    const { error } = await timed(open({ url: plain.url.replace('etcd:', 'etcds:') }));
    expect(error).toMatchObject({
      code: expect.stringMatching(/^BACKEND_/),
      message: expect.stringContaining('seems not to speak TLS'),
    });
    await plain.stop();
  });
});

describe('an address', () => {
  it('where nobody listens is unavailable', async () => {
    const { error, ms } = await timed(open({ hosts: '127.0.0.1:1' }));
    expect(error).toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
    expect((error as Error).cause).toBeInstanceOf(Error);
    expect(ms).toBeLessThan(2_000 * FACTOR);
  });

  it('where something else listens is refused for good', async () => {
    const other = createServer((socket) => socket.end("-ERR unknown command 'PRI'\r\n"));
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as { port: number };
    const { error } = await timed(open({ hosts: `127.0.0.1:${port}` }));
    expect(error).toMatchObject({
      code: 'BACKEND_REFUSED',
      message: expect.stringContaining('does not speak'),
    });
    other.close();
  });

  it('where somebody listens and says nothing is unavailable within the command timeout', async () => {
    const other = createServer(() => undefined);
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as { port: number };
    const { error, ms } = await timed(open({ hosts: `127.0.0.1:${port}` }, { commandTimeout: 1_000 }));
    expect(error).toMatchObject({ code: 'BACKEND_UNAVAILABLE' });
    expect(ms).toBeLessThan(1_000 + 1_000 * FACTOR);
    other.close();
  });
});
