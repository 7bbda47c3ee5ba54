import type { ServerNode } from '../../servers/handle.js';
import { askRedis } from '../../servers/redis-process.js';

/**
 * Keys that must not stay, and channels that somebody listens to. A fence's counter stays, and so does the birth of a
 * quorum's server; marks that end by themselves (of claims and places given up, of grants forced) may take their time, but
 * must have an end.
 */
export async function leftovers(nodes: readonly ServerNode[]): Promise<Record<string, number>> {
  const counts = { keys: 0, channels: 0 };
  for (const { port } of nodes) {
    await askRedis(port, {}, async (client) => {
      for (const key of await client.keys('holdfast:*')) {
        if (key.endsWith(':fence') || key === 'holdfast:born') continue;
        const isMark = /:(gone:[^}]*|forced|alive)$/.test(key);
        if (!isMark || (await client.pttl(key)) === -1) counts.keys += 1;
      }
      counts.channels += (await client.pubsub('CHANNELS', 'holdfast:*')).length;
    });
  }
  return counts;
}
