import { describe, expect, test } from 'vitest';
import { type CheckOptions, checkHistory } from './checker.js';
import { Script } from './script.js';

/** The verdict, and the kinds of violations with the times at which they are placed. */
function judge(script: Script, options?: CheckOptions): { verdict: string; found: string[]; doubts: number } {
  const { verdict, violations, doubts } = checkHistory(script.events, options);
  return {
    verdict,
    found: violations.map(({ rule, kind, at }) => `${rule}/${kind}@${at}`),
    doubts: doubts.length,
  };
}

const passes = { verdict: 'pass', found: [], doubts: 0 };
const fails = (...found: string[]): unknown => expect.objectContaining({ verdict: 'fail', found });
const unknown = expect.objectContaining({ verdict: 'unknown', found: [] });

/** Two holders that take turns. */
function turns(): Script {
  return new Script()
    .hold('p1', { token: 10, asked: 0, answered: 1, until: 100, released: 20 })
    .hold('p2', { token: 11, asked: 5, queuedAt: 6, answered: 22, until: 120, released: 40 });
}

describe('a history in which every promise is kept', () => {
  test('passes', () => {
    expect(judge(turns())).toEqual(passes);
  });

  test('does not pass when nobody ever held: nothing was proved', () => {
    expect(judge(new Script().ungranted('p1', { asked: 0, ended: 5 }))).toEqual(unknown);
  });

  test('does not pass when a demanded rule found nothing to judge', () => {
    expect(judge(turns(), { demand: ['recovery'] })).toEqual(unknown);
  });
});

describe('tokens are unique and rise in the real-time order of grants', () => {
  test('a token given twice', () => {
    const script = new Script()
      .hold('p1', { token: 10, asked: 0, answered: 1, until: 100, released: 20 })
      .hold('p2', { token: 10, asked: 5, answered: 22, until: 120, released: 40 });
    expect(judge(script)).toEqual(fails('tokens/token-repeated@22'));
  });

  test('a token below one that had been given before it was asked for', () => {
    const script = turns().hold('p3', { token: 9, asked: 50, answered: 51, until: 150, released: 60 });
    expect(judge(script)).toEqual(fails('tokens/token-not-rising@51'));
  });

  test('a token below that of the holder before, though both had asked at the same time', () => {
    const script = new Script()
      .hold('p1', { token: 11, asked: 0, answered: 10, until: 100, released: 20 })
      .hold('p2', { token: 10, asked: 0, answered: 30, until: 130, released: 40 });
    expect(judge(script)).toEqual(fails('tokens/token-not-rising@30'));
    // Without exclusion the second may have been granted first.
    expect(judge(script, { exclusion: 'fencing-only' })).toEqual(passes);
  });

  test('tokens of different names have nothing to do with each other', () => {
    const script = turns().hold('p3', {
      name: 'b',
      token: 3,
      asked: 50,
      answered: 51,
      until: 150,
      released: 60,
    });
    expect(judge(script)).toEqual(passes);
  });

  test('numbers beyond 2^53 are told apart', () => {
    const big = 9_007_199_254_740_993n;
    const script = new Script()
      .hold('p1', { token: `${big}`, asked: 0, answered: 1, until: 100, released: 20 })
      .hold('p2', { token: `${big - 1n}`, asked: 30, answered: 31, until: 120, released: 40 });
    expect(judge(script)).toEqual(fails('tokens/token-not-rising@31'));
  });

  test('a register saw a token that nobody can have been given', () => {
    expect(judge(turns().fencedWrite(45, 'p3', 12, true))).toEqual(fails('tokens/token-from-nowhere@45'));
  });

  test('a token may have been minted by an acquisition that was not heard of again', () => {
    const script = turns().ungranted('p3', { asked: 41 }).fencedWrite(45, 'p3', 12, true);
    expect(judge(script)).toEqual(passes);
  });

  test('but not by one that was asked for after the token was seen, nor twice by the same one', () => {
    const late = turns().ungranted('p3', { asked: 46 }).fencedWrite(45, 'p3', 12, true);
    expect(judge(late)).toEqual(fails('tokens/token-from-nowhere@45'));
    const twice = turns()
      .ungranted('p3', { asked: 41, ended: 44, outcome: 'unknown' })
      .fencedWrite(45, 'p3', 12, true)
      .fencedWrite(46, 'p3', 13, true);
    expect(judge(twice)).toEqual(fails('tokens/token-from-nowhere@46'));
  });

  test('and not by one that failed for certain', () => {
    const script = turns().ungranted('p3', { asked: 41, ended: 43 }).fencedWrite(45, 'p3', 12, true);
    expect(judge(script)).toEqual(fails('tokens/token-from-nowhere@45'));
  });

  test('a token minted by an unanswered acquisition must rise as well', () => {
    const script = turns().ungranted('p3', { asked: 41 }).fencedWrite(45, 'p3', 9, false);
    // It was asked for after 10 and 11 had been answered.
    expect(judge(script).found).toContain('tokens/token-from-nowhere@45');
  });

  test('a grant after the unanswered one must be above the token that the register saw', () => {
    const script = new Script()
      .ungranted('p1', { asked: 0 })
      .fencedWrite(5, 'p1', 20, true)
      .hold('p2', { token: 15, asked: 10, answered: 11, until: 100, released: 20 });
    expect(judge(script)).toEqual(fails('tokens/token-not-rising@11'));
  });
});

describe('claimed validity intervals never intersect', () => {
  test('a second holder before the first one gave back', () => {
    const script = new Script()
      .hold('p1', { token: 10, asked: 0, answered: 1, until: 100, released: 30 })
      .hold('p2', { token: 11, asked: 5, answered: 29, until: 120, released: 40 });
    expect(judge(script)).toEqual(fails('exclusion/two-holders@29'));
    expect(judge(script, { exclusion: 'fencing-only' })).toEqual(passes);
    expect(checkHistory(script.events).rules.exclusion.counts).toMatchObject({ overlaps: 1 });
  });

  test('a second holder before the validity of a stopped one ran out', () => {
    const script = new Script()
      .hold('p1', { token: 10, asked: 0, answered: 1, until: 100 })
      .hold('p2', { token: 11, asked: 5, answered: 99, until: 200, released: 140 });
    expect(judge(script)).toEqual(fails('exclusion/two-holders@99'));
  });

  test('a holder that was told of its loss only after the next one held', () => {
    const script = new Script()
      .hold('p1', { token: 10, asked: 0, answered: 1, until: 100 })
      .add(60, 'p1', { type: 'lost', name: 'a', owner: 'p1/10', reason: 'superseded' })
      .hold('p2', { token: 11, asked: 5, answered: 59, until: 159, released: 100 });
    expect(judge(script)).toEqual(fails('exclusion/two-holders@59'));
  });

  test('loss, release and death each end the claim', () => {
    const second = { token: 11, asked: 5, answered: 61, until: 161, released: 100 };
    const first = { token: 10, asked: 0, answered: 1, until: 100 };
    const lost = new Script()
      .hold('p1', first)
      .add(60, 'p1', { type: 'lost', name: 'a', owner: 'p1/10', reason: 'superseded' })
      .hold('p2', second);
    const died = new Script()
      .hold('p1', first)
      .add(60, 'testbed', { type: 'process-end', of: 'p1', how: 'killed' })
      .hold('p2', second);
    const released = new Script().hold('p1', { ...first, released: 60 }).hold('p2', second);
    for (const script of [lost, died, released]) expect(judge(script)).toEqual(passes);
  });

  test('a process that ended unseen claims nothing after its own last word', () => {
    const script = new Script()
      .hold('p1', { token: 10, asked: 0, answered: 1, until: 100 })
      .add(70, 'testbed', { type: 'process-end', of: 'p1', how: 'ended' })
      .hold('p2', { token: 11, asked: 5, answered: 61, until: 161, released: 100 });
    expect(judge(script)).toEqual(passes);
  });

  test('a renewal that the holder saw prolongs its claim', () => {
    const script = new Script()
      .hold('p1', { token: 10, asked: 0, answered: 1, until: 100 })
      .add(50, 'p1', { type: 'held', name: 'a', owner: 'p1/10', from: 50, until: 149 })
      .hold('p2', { token: 11, asked: 5, answered: 120, until: 220, released: 140 });
    expect(judge(script)).toEqual(fails('exclusion/two-holders@120'));
  });

  test('a handle that says less than before takes back the rest', () => {
    const script = new Script()
      .hold('p1', { token: 10, asked: 0, answered: 1, until: 100 })
      .add(50, 'p1', { type: 'held', name: 'a', owner: 'p1/10', from: 50, until: 60 })
      .hold('p2', { token: 11, asked: 5, answered: 70, until: 220, released: 140 });
    expect(judge(script)).toEqual(passes);
  });

  test('a lost handle that comes back to life', () => {
    const script = new Script()
      .hold('p1', { token: 10, asked: 0, answered: 1, until: 100 })
      .add(101, 'p1', { type: 'lost', name: 'a', owner: 'p1/10', reason: 'expired' })
      .add(110, 'p1', { type: 'held', name: 'a', owner: 'p1/10', from: 110, until: 200 });
    expect(judge(script)).toEqual(fails('exclusion/held-after-loss@110'));
  });

  test('a handle that still says held while and after it is released', () => {
    const script = new Script()
      .hold('p1', { token: 10, asked: 0, answered: 1, until: 100, released: 20, releaseOutcome: 'unknown' })
      .add(30, 'p1', { type: 'held', name: 'a', owner: 'p1/10', from: 30, until: 100 })
      .hold('p2', { token: 11, asked: 5, answered: 40, until: 140, released: 60 });
    expect(judge(script)).toEqual(fails('exclusion/two-holders@40'));
  });

  test('a release of unknown outcome may have been applied, at once or late, or never', () => {
    const release = { released: 20, releaseOutcome: 'unknown' } as const;
    for (const answered of [21, 60, 101]) {
      const script = new Script()
        .hold('p1', { token: 10, asked: 0, answered: 1, until: 100, ...release })
        .hold('p2', { token: 11, asked: 5, answered, until: 220, released: 140 });
      expect(judge(script)).toEqual(passes);
    }
  });

  test('an acquisition of unknown outcome claims nothing, whatever it left at the server', () => {
    const script = turns().ungranted('p3', { asked: 2, ended: 30, outcome: 'unknown' });
    expect(judge(script)).toEqual(passes);
  });
});

describe('a fenced register never accepts a stale token', () => {
  test('a stale write that was accepted', () => {
    const script = turns().fencedWrite(10, 'p1', 10, true).fencedWrite(30, 'p2', 11, true);
    expect(judge(script)).toEqual(passes);
    expect(judge(script.fencedWrite(35, 'p1', 10, true))).toEqual(fails('register/stale-token-accepted@35'));
  });

  test('a stale write that was refused is as it should be; a fresh one is not', () => {
    const script = turns().fencedWrite(30, 'p2', 11, true).fencedWrite(35, 'p1', 10, false);
    expect(judge(script)).toEqual(passes);
    expect(judge(script.fencedWrite(36, 'p2', 11, false))).toEqual(fails('register/fresh-token-refused@36'));
  });

  test('updates lost by an unfenced register are counted', () => {
    const write = (at: number, writer: string, token: string, base: number, replaced: number): EventAt => [
      at,
      'register',
      { type: 'unfenced-write', name: 'a', writer, token, base, replaced },
    ];
    const script = turns()
      .add(...write(10, 'p1', '10', 0, 0))
      .add(30, 'register', {
        type: 'unfenced-write',
        name: 'a',
        writer: 'p2',
        token: '11',
        base: 1,
        replaced: 1,
      })
      .add(35, 'register', {
        type: 'unfenced-write',
        name: 'a',
        writer: 'p1',
        token: '10',
        base: 1,
        replaced: 2,
      });
    expect(judge(script)).toEqual(passes);
    expect(checkHistory(script.events).rules.register.counts).toMatchObject({
      unfencedWrites: 3,
      updatesLost: 1,
      staleUnfenced: 1,
    });
  });

  test('without a record of its own: an accepted write whose token had been overtaken', () => {
    const script = turns()
      .observedWrite('p2', { token: 11, asked: 30, ended: 31 })
      .observedWrite('p1', { token: 10, asked: 32, ended: 33 });
    expect(judge(script)).toEqual(fails('register/no-order-explains-writes@33'));
  });

  test('without a record of its own: a write of unknown outcome may explain a refusal', () => {
    const refused = turns().observedWrite('p1', { token: 10, asked: 32, ended: 33, accepted: false });
    expect(judge(refused)).toEqual(fails('register/no-order-explains-writes@33'));
    expect(judge(refused.observedWrite('p2', { token: 11, asked: 30 }))).toEqual(passes);
  });

  test('a search that runs out of steps says unknown, never pass', () => {
    const script = turns();
    for (let index = 0; index < 20; index += 1) {
      script.observedWrite('p1', { token: 10, asked: 30 + index, ended: 30.5 + index });
    }
    expect(judge(script)).toEqual(passes);
    expect(judge(script, { searchBudget: 10 })).toEqual(unknown);
  });
});

describe('first in, first out', () => {
  /** p1 holds; p2 has its place before p3 asks, and p3 is granted first. */
  const overtaking = (): Script =>
    new Script()
      .hold('p1', { token: 10, asked: 0, answered: 1, until: 200, released: 20 })
      .hold('p3', { token: 11, asked: 8, queuedAt: 9, answered: 22, until: 200, released: 30 })
      .hold('p2', { token: 12, asked: 5, queuedAt: 6, answered: 32, until: 200, released: 40 });

  test('a waiter that was overtaken for certain', () => {
    expect(judge(overtaking())).toEqual(fails('fairness/overtaken@32'));
  });

  test('is counted, and no more, where fairness is not promised', () => {
    expect(judge(overtaking(), { fairness: 'none' })).toEqual(passes);
    expect(checkHistory(overtaking().events, { fairness: 'none' }).rules.fairness.counts).toMatchObject({
      inversions: 1,
    });
  });

  test('proves nothing when the other had asked before it was known to have its place', () => {
    const script = new Script()
      .hold('p1', { token: 10, asked: 0, answered: 1, until: 200, released: 20 })
      .hold('p3', { token: 11, asked: 5.5, queuedAt: 9, answered: 22, until: 200, released: 30 })
      .hold('p2', { token: 12, asked: 5, queuedAt: 6, answered: 32, until: 200, released: 40 });
    expect(judge(script)).toEqual(passes);
  });

  test('proves nothing when the waiter was stopped meanwhile, but does when somebody else was', () => {
    expect(judge(overtaking().fault('sigstop', 10, 15, 1000, ['p2']))).toEqual(passes);
    expect(judge(overtaking().fault('restart', 10, 15, 1000))).toEqual(passes);
    expect(judge(overtaking().fault('sigstop', 10, 15, 1000, ['p3']))).toEqual(
      fails('fairness/overtaken@32'),
    );
    expect(judge(overtaking().fault('sigstop', 2, 4, 1000, ['p2']))).toEqual(fails('fairness/overtaken@32'));
  });

  test('proves nothing when the waiter may have been served in between: its outcome is unknown', () => {
    const script = new Script()
      .hold('p1', { token: 10, asked: 0, answered: 1, until: 200, released: 20 })
      .hold('p3', { token: 11, asked: 8, queuedAt: 9, answered: 22, until: 200, released: 30 })
      .ungranted('p2', { asked: 5, ended: 50, outcome: 'unknown' });
    expect(judge(script)).toEqual(passes);
  });
});

describe('after each fault heals, somebody holds within its bound', () => {
  const before = { token: 10, asked: 0, answered: 1, until: 30, released: 20 };

  test('held in time', () => {
    const script = new Script()
      .hold('p1', before)
      .fault('restart', 25, 50, 100)
      .hold('p2', { token: 11, asked: 30, answered: 140, until: 300, released: 160 });
    expect(judge(script, { demand: ['recovery'] })).toEqual(passes);
    expect(checkHistory(script.events).rules.recovery.counts).toMatchObject({ longestRecovery: 90 });
  });

  test('held too late, while somebody waited', () => {
    const script = new Script()
      .hold('p1', before)
      .fault('restart', 25, 50, 100)
      .hold('p2', { token: 11, asked: 30, answered: 151, until: 300, released: 160 });
    expect(judge(script)).toEqual(fails('recovery/nobody-holds@150'));
  });

  test('never held again, though somebody was refused after the bound', () => {
    const script = new Script()
      .hold('p1', before)
      .fault('restart', 25, 50, 100)
      .ungranted('p2', { asked: 160, ended: 170 });
    expect(judge(script)).toEqual(fails('recovery/nobody-holds@150'));
  });

  test('one name is stuck while another goes on', () => {
    const script = new Script()
      .hold('p1', before)
      .hold('p3', { name: 'b', token: 5, asked: 0, answered: 1, until: 500, released: 400 })
      .fault('restart', 25, 50, 100)
      .ungranted('p2', { asked: 60, ended: 170 });
    expect(judge(script)).toEqual(fails('recovery/nobody-holds@150'));
  });

  test('says unknown where an acquisition of unknown outcome may have held', () => {
    const script = new Script()
      .hold('p1', before)
      .fault('restart', 25, 50, 100)
      .ungranted('p2', { asked: 30, ended: 100, outcome: 'unknown' })
      .ungranted('p2', { asked: 160, ended: 170 });
    expect(judge(script)).toEqual(unknown);
  });

  test('says unknown where nobody tried, and where the fault never healed', () => {
    expect(judge(new Script().hold('p1', before).fault('restart', 25, 50, 100))).toEqual(unknown);
    const unhealed = new Script()
      .hold('p1', before)
      .fault('restart', 25, undefined, 100)
      .hold('p2', { token: 11, asked: 30, answered: 140, until: 300, released: 160 });
    expect(judge(unhealed)).toEqual(unknown);
  });
});

describe('nothing is left behind', () => {
  test('more than before', () => {
    const script = turns().levels(0, 'before', 'server', { keys: 2, leases: 0 });
    expect(judge(script.levels(90, 'after', 'server', { keys: 2, leases: 1 }))).toEqual(
      fails('leftovers/left-behind@90'),
    );
    expect(
      judge(turns().levels(0, 'before', 's', { keys: 2 }).levels(90, 'after', 's', { keys: 1 })),
    ).toEqual(passes);
  });

  test('a kind that was not there before', () => {
    const script = turns().levels(0, 'before', 'server', {}).levels(90, 'after', 'server', { timers: 1 });
    expect(judge(script)).toEqual(fails('leftovers/left-behind@90'));
  });

  test('says unknown when it was not counted again, unless its process was killed', () => {
    const script = turns().levels(0, 'before', 'p1', { timers: 0 });
    expect(judge(script)).toEqual(unknown);
    expect(judge(script.add(80, 'testbed', { type: 'process-end', of: 'p1', how: 'killed' }))).toEqual(
      passes,
    );
  });
});

describe('a record that contradicts itself never passes', () => {
  test('an answer without a question', () => {
    expect(judge(turns().add(50, 'p1', { type: 'fail', op: 99, reason: 'contended' }))).toEqual(unknown);
  });

  test('one owner granted twice', () => {
    const script = turns().hold('p1', { token: 10, asked: 60, answered: 61, until: 100, released: 70 });
    expect(judge(script).verdict).toBe('unknown');
  });

  test('a holder that nobody knows', () => {
    const held = { type: 'held', name: 'a', owner: 'p9/1', from: 50, until: 60 } as const;
    expect(judge(turns().add(50, 'p9', held))).toEqual(unknown);
  });

  test('time that runs backwards in a process', () => {
    const { events } = turns();
    const [first, second, ...rest] = events.filter(({ process }) => process === 'p1');
    const others = events.filter(({ process }) => process !== 'p1');
    const backwards = [second, first, ...rest, ...others].filter((event) => event !== undefined);
    expect(checkHistory(backwards).verdict).toBe('unknown');
  });
});

type EventAt = Parameters<Script['add']>;
