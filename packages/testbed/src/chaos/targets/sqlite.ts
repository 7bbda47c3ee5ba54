import { join } from 'node:path';
import type { ChaosTarget } from '../target.js';
import { countLocks } from './locks.js';

/** A SQLite file that all workers share. */
export const sqlite: ChaosTarget = {
  id: 'sqlite',
  description: '@holdfast/sql on a SQLite file',
  crossProcess: true,
  fairness: 'fifo',
  exclusion: 'promised',
  ttl: { min: 400, max: 1_500 },
  // A killed holder's ttl, a killed waiter's grace, and time for a poll on a busy machine.
  recoverWithin: 10_000,
  faults: [],
  async start({ folder }) {
    const url = `sqlite:${join(folder, 'locks.db')}`;
    return {
      url: () => url,
      leftovers: () => countLocks('sqlite', url),
      stop: async () => {},
    };
  },
};
