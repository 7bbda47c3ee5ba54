import type { Redis } from 'ioredis';
import type { ServerNode } from '../../servers/handle.js';
import type { RedisClusterHandle } from '../../servers/redis-cluster.js';
import { askRedis } from '../../servers/redis-process.js';
import type { ChaosFault, RunningTarget } from '../target.js';

/** Names that the workers contend for. */
const NAMES = ['apple', 'birch', 'cedar'] as const;

/** Keys are moved one after the other, and what was written behind them again. */
const MANY = '1000';

/** A slot is moved to another node with its keys, slowly, while its lock is held and waited for; then back. */
export const slotMoved: ChaosFault<RunningTarget & { readonly servers: RedisClusterHandle }> = {
  id: 'slot-moved',
  description: 'the slot of a lock in use moves to another node, key by key',
  touches: 'everybody',
  async inject({ servers }, { random }) {
    const key = `holdfast:{${random.pick(NAMES)}}`;
    const from = await servers.ownerOf(key);
    const [first, ...others] = servers.nodes.filter((node) => node !== from);
    if (first === undefined) throw new Error('a cluster of one node has nowhere to move a slot to');
    const finish = await beginToMove(key, from, random.pick([first, ...others]));
    // Until it heals, some keys are here and some are there.
    return finish;
  },
};

/** Half of the slot's keys go over; the returned function moves the rest and settles whose slot it is. */
async function beginToMove(key: string, from: ServerNode, to: ServerNode): Promise<() => Promise<void>> {
  const slot = await ask(from, (client) => client.call('CLUSTER', 'KEYSLOT', key));
  const [fromId, toId] = [await idOf(from), await idOf(to)];
  await ask(to, (client) => client.call('CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', fromId));
  await ask(from, (client) => client.call('CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', toId));
  const keysOf = (client: Redis) =>
    client.call('CLUSTER', 'GETKEYSINSLOT', String(slot), MANY) as Promise<string[]>;
  const migrate = (client: Redis, moved: string) =>
    client.call('MIGRATE', to.host, String(to.port), moved, '0', '5000');
  await ask(from, async (client) => {
    const [first] = await keysOf(client);
    if (first !== undefined) await migrate(client, first);
  });
  return async () => {
    await ask(from, async (client) => {
      for (let keys = await keysOf(client); keys.length > 0; keys = await keysOf(client)) {
        for (const each of keys) await migrate(client, each);
      }
    });
    for (const node of [to, from]) {
      await ask(node, (client) => client.call('CLUSTER', 'SETSLOT', String(slot), 'NODE', toId));
    }
  };
}

async function idOf(node: ServerNode): Promise<string> {
  return String(await ask(node, (client) => client.call('CLUSTER', 'MYID')));
}

function ask<T>(node: ServerNode, question: (client: Redis) => Promise<T>): Promise<T> {
  return askRedis(node.port, {}, question);
}
