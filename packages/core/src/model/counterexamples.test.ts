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

  it('two questions are answered at once, one before and one after a release by force: the first was true', () =>
    play({
      ...CALM,
      fates: [
        [
          { kind: 'pass' },
          { kind: 'pass' },
          { kind: 'request swallowed' },
          { kind: 'answer swallowed' },
          { kind: 'pass' },
          { kind: 'answer lost' },
          { kind: 'slow', there: 0, back: 0 },
          { kind: 'pass' },
          { kind: 'pass' },
          { kind: 'pass' },
          { kind: 'answer swallowed' },
          { kind: 'pass' },
          { kind: 'pass' },
          { kind: 'refused' },
          { kind: 'slow', there: 300, back: 0 },
        ],
        [{ kind: 'slow', there: 900, back: 0 }],
        [],
      ],
      steps: [
        acquire,
        acquire,
        { do: 'release', which: 0 },
        { ...acquire, renew: true },
        { do: 'pass time', ms: 20 },
        { do: 'pass time', ms: 1000 },
        acquire,
        { do: 'pass time', ms: 400 },
        { do: 'extend', which: 0, ttl: 500 },
        { do: 'verify', which: 0 },
        { do: 'verify', which: 0 },
        { do: 'pass time', ms: 150 },
        { do: 'force', client: 0, name: 0 },
        { do: 'pass time', ms: 400 },
      ],
    }));
});
