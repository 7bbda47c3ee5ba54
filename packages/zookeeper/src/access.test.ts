import { createHash } from 'node:crypto';
import { createLocks, type Locks } from '@holdfast/core';
import { startZooKeeper, type ZooKeeperHandle } from '@holdfast/testbed';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { zookeeperBackend } from './backend.js';
import type { ZooKeeperBackendOptions } from './options.js';
import { connectedClient, type RawClient, rawLibrary, SESSION, until, whenWaiting } from './test-kit.js';

let server: ZooKeeperHandle;
beforeAll(async () => {
  server = await startZooKeeper();
});
afterAll(() => server.stop());

let roots = 0;
/** A place of the test's own. */
const freshRoot = (): string => `/access-${process.pid}-${roots++}`;

async function open(chroot: string, options: Partial<ZooKeeperBackendOptions> = {}): Promise<Locks> {
  const locks = await createLocks(
    zookeeperBackend({ url: server.url, chroot, sessionTimeout: SESSION, ...options }),
  );
  onTestFinished(() => locks.close());
  return locks;
}

const [READ, CREATE, DELETE] = [1, 4, 8];
const { ACL, Id } = rawLibrary;

const LOGIN = 'app:secret';
/** As servers write a user's login into an ACL. */
const APP = `app:${createHash('sha1').update(LOGIN).digest('base64')}`;

/** A node on which this user may do so much, and nobody else anything. */
function make(admin: RawClient, path: string, permissions: number): Promise<void> {
  const app = new ACL(permissions, new Id('digest', APP));
  return new Promise((resolve, reject) => {
    admin.create(path, [app], (error) => (error ? reject(error) : resolve()));
  });
}

async function works(locks: Locks): Promise<void> {
  const hold = await locks.lock('k').acquire();
  const queued = whenWaiting(locks, 'k');
  const waiting = locks.lock('k').acquire();
  await queued;
  expect(await locks.inspect('k')).toMatchObject({ held: true, owner: hold.owner });
  expect(await hold.verify()).toBe(true);
  expect(await hold.release()).toBe(true);
  await (await waiting).release();
}

describe('least privilege', () => {
  test('the right to create in a node that an administrator made is enough', async () => {
    const root = freshRoot();
    const admin = await connectedClient(server.node);
    await make(admin, root, CREATE);
    await works(await open(root, { auth: LOGIN }));
  });

  test('or to create in "sessions", and to create, delete and list in "locks", and nothing above', async () => {
    const root = freshRoot();
    const admin = await connectedClient(server.node);
    await make(admin, root, CREATE);
    const builder = await connectedClient(server.node, LOGIN);
    await make(builder, `${root}/holdfast`, CREATE);
    await make(builder, `${root}/holdfast/sessions`, CREATE);
    await make(builder, `${root}/holdfast/locks`, CREATE | DELETE | READ);
    const locks = await open(root, { auth: LOGIN });
    await works(locks);
    const exists = (path: string) =>
      new Promise((resolve, reject) =>
        admin.exists(path, (error, stat) => (error ? reject(error) : resolve(stat !== null))),
      );
    await until(async () => !(await exists(`${root}/holdfast/locks/k`)));
  });

  test('without it, opening is refused at once, and the error says where to look', async () => {
    const root = freshRoot();
    const admin = await connectedClient(server.node);
    await make(admin, root, READ);
    await expect(open(root, { auth: LOGIN })).rejects.toMatchObject({
      code: 'BACKEND_REFUSED',
      message: expect.stringMatching(/not authorised.*ACLs/),
      cause: expect.any(Error),
    });
  });
});

describe('a stranger', () => {
  test('cannot free, take or see the locks of a user, and is refused rather than kept waiting', async () => {
    const root = freshRoot();
    const ours = await open(root, { auth: LOGIN });
    const hold = await ours.lock('k').acquire();
    for (const auth of [undefined, 'other:secret', 'app:wrong']) {
      await expect(open(root, auth === undefined ? {} : { auth })).rejects.toMatchObject({
        code: 'BACKEND_REFUSED',
      });
    }
    expect(await hold.verify()).toBe(true);
    expect(await (await open(root, { auth: LOGIN })).lock('k').tryAcquire()).toBeNull();
  });

  test('takes part where the nodes are open by wish, whoever made them', async () => {
    const root = freshRoot();
    const ours = await open(root, { auth: LOGIN, acl: 'open' });
    const hold = await ours.lock('k').acquire();
    const theirs = await open(root);
    const queued = whenWaiting(theirs, 'k');
    const waiting = theirs.lock('k').acquire();
    await queued;
    await hold.release();
    expect((await waiting).fencingToken).toBeGreaterThan(hold.fencingToken);
  });
});
