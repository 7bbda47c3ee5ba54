import { describe, it } from 'vitest';
import { play } from './play.js';
import type { Step, Story } from './story.js';

const acquire: Extract<Step, { do: 'acquire' }> = {
  ...{ do: 'acquire', client: 0, name: 0 },
  ...{ wait: 0, ttl: 500, renew: false, maxHold: Infinity, minHold: 0 },
};

const CALM: Pick<Story, 'rates' | 'fates' | 'names' | 'luck'> = {
  ...{ rates: [1, 1, 1], fates: [], names: 1, luck: 1 },
};

/** Stories that once went wrong, as they were shrunk. */
describe('stories that once went wrong', () => {
  it('a machine is suspended while its wall clock is set back: the suspension counts', () =>
    play({
      ...CALM,
      steps: [
        { ...acquire, client: 1, ttl: 1000 },
        { do: 'suspend', client: 1 },
        { ...acquire, wait: Infinity },
        { do: 'pass time', ms: 1000 },
        { do: 'set wall', client: 1, by: -3_600_000 },
      ],
    }));
});
