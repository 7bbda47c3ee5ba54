import type { LockHandle, Locks } from '@holdfast/core';
import {
  noNamespaces,
  type ServerNode,
  startZooKeeperCluster,
  type ZooKeeperHandle,
} from '@holdfast/testbed';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  FACTOR,
  fourLetterWord,
  PATIENCE,
  proxyTo,
  SESSION,
  Tenant,
  until,
  whenWaiting,
} from './test-kit.js';

let ensemble: ZooKeeperHandle;
afterEach(() => ensemble.stop());

function startWith(tickTime: number, partitionable: 'proxies' | 'namespaces' = 'proxies'): void {
  beforeEach(async () => {
    const config = { maxSessionTimeout: 60_000 };
    ensemble = await startZooKeeperCluster({ own: true, partitionable, tickTime, config });
  }, 120_000 * FACTOR);
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function leader(): Promise<ServerNode> {
  const node = ensemble.nodes[await ensemble.leader()];
  if (node === undefined) throw new Error('no leader');
  return node;
}

async function follower(): Promise<ServerNode> {
  const first = await leader();
  const node = ensemble.nodes.find((candidate) => candidate !== first);
  if (node === undefined) throw new Error('no follower');
  return node;
}

/**
 * Everybody who holds the lock of one name, all in this process, so that "at the same moment" can be asked: at each
 * grant nobody else's handle may say that it is held, and the token must be the highest so far.
 */
class Register {
  grants = 0;
  losses = 0;
  readonly violations: string[] = [];
  readonly #handles = new Set<LockHandle>();
  #highest = 0n;

  granted(handle: LockHandle): void {
    this.grants++;
    const others = [...this.#handles].filter((other) => other.isHeld());
    if (others.length > 0) {
      const left = Math.max(...others.map((other) => other.remaining()));
      this.violations.push(`two holders, the older for another ${Math.round(left)} ms`);
    }
    if (handle.fencingToken <= this.#highest) this.violations.push('a token that does not rise');
    this.#highest = handle.fencingToken;
    this.#handles.add(handle);
    handle.signal.addEventListener('abort', () => void this.losses++, { once: true });
  }

  /** Holds the lock again and again, each time for up to `hold` ms, until told to stop. */
  async work(locks: Locks, hold: number, going: () => boolean): Promise<void> {
    while (going()) {
      try {
        const handle = await locks.lock('k').acquire({ wait: SESSION });
        this.granted(handle);
        await pause(Math.random() * hold);
        await handle.release().catch(() => undefined);
        this.#handles.delete(handle);
      } catch {
        // Contended for too long, or no server: that is what faults do.
      }
    }
  }
}

const PAIRS = 8;

/**
 * Holders sit at one server, each with a session and a lock of its own, and waiters at the others; then that server is
 * cut off, at any moment between two heartbeats. Answers with what each lock's register says.
 */
async function cutOff(server: () => Promise<ServerNode>, rounds: number): Promise<readonly Register[]> {
  const tenant = new Tenant(...ensemble.nodes);
  const node = await server();
  const others = ensemble.nodes.filter((other) => other !== node);
  // An election may take its time.
  const patient = { unavailableAfter: '10m' } as const;
  const waiter = await tenant.locks(others, patient);
  const pairs = await Promise.all(
    Array.from({ length: PAIRS }, async (_, index) => ({
      name: `k${index}`,
      holder: await tenant.locks([node], patient),
      register: new Register(),
    })),
  );
  for (let round = 0; round < rounds; round++) {
    const next = await Promise.all(
      pairs.map(async ({ name, holder, register }) => {
        register.granted(await holder.lock(name).acquire());
        const queued = whenWaiting(waiter, name);
        const waiting = waiter.lock(name).acquire();
        await queued;
        return { waiting, register };
      }),
    );
    await pause(Math.random() * SESSION);
    ensemble.isolate(node);
    await Promise.all(
      next.map(async ({ waiting, register }) => {
        const hold = await waiting;
        register.granted(hold);
        await hold.release();
      }),
    );
    await ensemble.rejoin();
  }
  return pairs.map(({ register }) => register);
}

// Where this machine can make namespaces not a packet passes; a proxy that falls silent still takes what it is sent.
describe.each(['proxies' as const, ...(noNamespaces() === undefined ? (['namespaces'] as const) : [])])(
  'cut off by %s',
  (partitionable) => {
    // The shortest session that a server allows is two ticks: then followers report as rarely as they may.
    startWith(SESSION / 2, partitionable);

    test(
      'at a follower that does not reach its leader, a holder is never one of two',
      async () => {
        const registers = await cutOff(follower, 4);
        expect(registers.flatMap(({ violations }) => violations)).toEqual([]);
        expect(registers.map(({ grants, losses }) => [grants, losses])).toEqual(Array(PAIRS).fill([8, 4]));
      },
      300_000 * FACTOR,
    );
  },
);

describe('an ensemble', () => {
  startWith(250);

  test(
    'cut off at a leader that does not reach its followers, a holder is never one of two',
    async () => {
      const registers = await cutOff(leader, 1);
      expect(registers.flatMap(({ violations }) => violations)).toEqual([]);
      expect(registers.map(({ grants, losses }) => [grants, losses])).toEqual(Array(PAIRS).fill([2, 1]));
    },
    300_000 * FACTOR,
  );

  test(
    'a holder whose server falls silent keeps the lock at another',
    async () => {
      const proxies = await Promise.all(ensemble.nodes.map(proxyTo));
      const tenant = new Tenant(...ensemble.nodes);
      const locks = await tenant.locks(proxies);
      const hold = await locks.lock('k').acquire();
      const silent = proxies.find(({ connections }) => connections > 0);
      silent?.blackHole();
      // Far past what the session would be without another server.
      await pause(3 * SESSION);
      expect(hold.isHeld()).toBe(true);
      expect(await hold.verify()).toBe(true);
      expect(await hold.release()).toBe(true);
    },
    120_000 * FACTOR,
  );

  test(
    'whatever happens to the servers, there is one holder, and afterwards somebody holds again',
    async () => {
      const tenant = new Tenant(...ensemble.nodes);
      const register = new Register();
      const clients = await Promise.all(
        Array.from({ length: 6 }, (_, index) => {
          const node = ensemble.nodes[index % 3];
          return tenant.locks(index < 3 && node !== undefined ? [node] : ensemble.nodes);
        }),
      );
      let going = true;
      const work = clients.map((locks) => register.work(locks, 50, () => going));
      const report: string[] = [];

      const story = async (
        what: string,
        happen: (node: ServerNode) => Promise<() => Promise<void>>,
        where = leader,
      ) => {
        await pause(SESSION / 2);
        const before = register.grants;
        const undo = await happen(await where());
        await pause(1.5 * SESSION);
        await undo();
        const healed = { at: performance.now(), grants: register.grants };
        await until(() => register.grants > healed.grants + 10);
        report.push(
          `${what}: ${register.grants - before} grants, ${Math.round(performance.now() - healed.at)} ms after it was over`,
        );
      };
      const killed = async (node: ServerNode) => {
        await node.kill();
        return () => node.start();
      };
      const paused = async (node: ServerNode) => {
        await node.pause();
        return () => node.resume();
      };
      const isolated = async (node: ServerNode) => {
        ensemble.isolate(node);
        return () => ensemble.rejoin();
      };
      await story('leader killed', killed);
      await story('leader paused', paused);
      await story('leader cut off', isolated);
      await story('follower killed', killed, follower);
      await story('follower paused', paused, follower);
      await story('follower cut off', isolated, follower);
      await story('all restarted', async () => {
        await Promise.all(ensemble.nodes.map((node) => node.kill()));
        return async () => void (await Promise.all(ensemble.nodes.map((node) => node.start())));
      });
      going = false;
      await Promise.all(work);
      console.log(`${report.join('\n')}\n${register.grants} grants, ${register.losses} losses signalled`);
      expect(register.violations).toEqual([]);

      await Promise.all(clients.map((locks) => locks.close()));
      const session = await tenant.session();
      expect(await tenant.parents()).toEqual([]);
      expect(await session.children(`/${tenant.prefix}/sessions`, performance.now() + PATIENCE)).toEqual([]);
      for (const node of ensemble.nodes) {
        // Ours that looks, where it is, and the one that asks.
        const connections = (await fourLetterWord(node, 'cons')).trim().split('\n').length;
        expect(connections).toBeLessThanOrEqual(2);
      }
    },
    300_000 * FACTOR,
  );
});
