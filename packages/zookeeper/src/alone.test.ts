import { startZooKeeper, type ZooKeeperHandle } from '@holdfast/testbed';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isAlone } from './alone.js';
import { encodeName, nodePrefix } from './names.js';
import type { Session } from './session.js';
import { received, soon, Tenant } from './test-kit.js';

let server: ZooKeeperHandle;
beforeAll(async () => {
  server = await startZooKeeper();
});
afterAll(() => server.stop());

describe('a new node', () => {
  const session = {} as Session;
  const last = { session, sequence: 6, removedBy: 100n };
  const node = (sequence: number, czxid: bigint) => ({ sequence, czxid });

  it('is alone when it has the next number, and a lock made anew could not have come to it', () => {
    expect(isAlone(session, node(7, 101n), last)).toBe(true);
    // Removing the lock's node, making it, and the numbers 0 to 6 take nine transactions.
    expect(isAlone(session, node(7, 109n), last)).toBe(true);
    expect(isAlone(session, node(7, 110n), last)).toBe(false);
  });

  it('may have company otherwise', () => {
    expect(isAlone(session, node(8, 102n), last)).toBe(false);
    expect(isAlone(session, node(6, 101n), last)).toBe(false);
    expect(isAlone({} as Session, node(7, 101n), last)).toBe(false);
    // A server whose history went back, and a counter past its end.
    expect(isAlone(session, node(7, 99n), last)).toBe(false);
    expect(isAlone(session, node(-2_147_483_648, 101n), { ...last, sequence: 2 ** 31 - 1 })).toBe(false);
    expect(isAlone(session, node(0, 101n), { ...last, sequence: -1 })).toBe(false);
  });
});

it('a lock that nobody else uses costs two requests a time', async () => {
  const locks = await new Tenant(server.node).locks();
  const lock = locks.lock('own');
  const pair = async (): Promise<void> => void (await (await lock.acquire()).release());
  for (let warm = 0; warm < 3; warm++) await pair();
  const before = await received(server.node);
  for (let turn = 0; turn < 100; turn++) await pair();
  // A heartbeat may come between, and both looks at the server count as one each.
  expect((await received(server.node)) - before).toBeLessThan(220);
});

it('sees who came between, as often as it likes', async () => {
  const tenant = new Tenant(server.node);
  const [ours, theirs] = [await tenant.locks(), await tenant.locks()];
  for (let turn = 0; turn < 5; turn++) {
    for (let warm = 0; warm < 3; warm++) await (await ours.lock('k').acquire()).release();
    const other = await theirs.lock('k').acquire();
    expect(await ours.lock('k').tryAcquire()).toBeNull();
    await other.release();
  }
  expect(await ours.lock('k').tryAcquire()).not.toBeNull();
});

it("is not deceived by a lock's node that was made anew, whose numbers start again", async () => {
  const tenant = new Tenant(server.node);
  const locks = await tenant.locks();
  const lock = locks.lock('anew');
  for (let turn = 0; turn < 3; turn++) await (await lock.acquire()).release();
  const session = await tenant.session();
  const parent = `/${tenant.prefix}/locks/${encodeName('anew')}`;
  await session.remove(parent, soon());
  await session.make(parent, soon());
  const nodes: string[] = [];
  for (const owner of ['x', 'y', 'z'])
    nodes.push((await session.createInLine(`${parent}/${nodePrefix(owner)}`, Buffer.alloc(0), soon())).path);
  expect(nodes.at(-1)).toMatch(/z-0000000002$/);
  // Ours is number 3, as it would have been.
  expect(await lock.tryAcquire()).toBeNull();
  expect((await locks.inspect('anew')).owner).toBe('x');
});
