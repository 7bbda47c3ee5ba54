import { Redis } from 'ioredis';
import type { Backend } from './subject.js';

/** How many commands the server has carried out, where it counts them. */
export type CommandCounter = () => Promise<number>;

/** A counter for the backend's server; undefined where the server has none that is exact. */
export async function commandCounter(
  backend: Backend,
  url: string,
): Promise<{ count: CommandCounter; close: () => Promise<unknown> } | undefined> {
  if (backend !== 'redis') return undefined;
  const client = new Redis(url);
  return {
    // What clients sent, not the calls that scripts make inside: every script runs as one EVALSHA.
    async count() {
      const stats = await client.info('commandstats');
      let calls = 0;
      for (const [, name, n] of stats.matchAll(/cmdstat_([^:]+):calls=(\d+)/g)) {
        if (CLIENT_COMMANDS.has(name ?? '')) calls += Number(n);
      }
      return calls;
    },
    close: () => client.quit(),
  };
}

const CLIENT_COMMANDS = new Set(['eval', 'evalsha', 'publish', 'subscribe', 'unsubscribe']);
