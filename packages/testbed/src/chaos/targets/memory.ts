import type { ChaosTarget } from '../target.js';

/** The locks of one process: every worker is a lane of it. */
export const memory: ChaosTarget = {
  id: 'memory',
  description: 'the memory backend, all callers in one process',
  crossProcess: false,
  fairness: 'fifo',
  exclusion: 'promised',
  ttl: { min: 300, max: 1_000 },
  recoverWithin: 4_000,
  faults: [],
  async start() {
    return {
      url: () => 'memory:',
      // What the process itself counts when it ends is all that there is.
      leftovers: async () => ({}),
      stop: async () => {},
    };
  },
};
