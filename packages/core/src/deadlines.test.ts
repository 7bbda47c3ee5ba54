import { expect, it } from 'vitest';
import type { Clock } from './clock.js';
import { Deadlines } from './deadlines.js';
import { ManualClock } from './testing/manual-clock.js';

it('each passes in its time unless it is lifted, whatever the order in which they were set', async () => {
  const clock = new ManualClock();
  const deadlines = new Deadlines(clock);
  const late: string[] = [];
  const set = (name: string, ms: number) => deadlines.set(ms, () => late.push(name));
  set('second', 200);
  const lifted = set('lifted', 150);
  set('third', 300);
  set('first', 100);
  await clock.advance(100);
  expect(late).toEqual(['first']);
  deadlines.lift(lifted);
  deadlines.lift(lifted);
  await clock.advance(100);
  expect(late).toEqual(['first', 'second']);
  set('fourth', 200);
  await clock.advance(1000);
  expect(late).toEqual(['first', 'second', 'third', 'fourth']);
});

it('one that is set when another passes has its own time', async () => {
  const clock = new ManualClock();
  const deadlines = new Deadlines(clock);
  const late: number[] = [];
  deadlines.set(100, () => {
    late.push(clock.now());
    deadlines.set(50, () => late.push(clock.now()));
  });
  deadlines.set(400, () => late.push(clock.now()));
  const started = clock.now();
  await clock.advance(1000);
  expect(late.map((at) => at - started)).toEqual([100, 150, 400]);
});

it('after the end what is pending still passes in its time, and then no timer is left', async () => {
  const clock = new ManualClock();
  const deadlines = new Deadlines(keepable(clock));
  const late: string[] = [];
  deadlines.lift(deadlines.set(100, () => late.push('lifted')));
  const pending = deadlines.set(200, () => late.push('lifted later'));
  deadlines.set(300, () => late.push('late'));
  expect(clock.timers).toBe(1);
  deadlines.stop();
  deadlines.lift(pending);
  await clock.advance(1000);
  expect([late, clock.timers]).toEqual([['late'], 0]);
  deadlines.lift(deadlines.set(100, () => late.push('after the end')));
  expect(clock.timers).toBe(0);
});

it('with nothing pending its timer lapses, and is gone with the end', () => {
  const clock = new ManualClock();
  const deadlines = new Deadlines(keepable(clock));
  deadlines.lift(deadlines.set(100, () => {}));
  expect(clock.timers).toBe(1);
  deadlines.stop();
  expect(clock.timers).toBe(0);
});

/** As Node's timers, which can be told to keep the process alive or not. */
function keepable(clock: ManualClock): Clock {
  return {
    now: () => clock.now(),
    wall: () => clock.wall(),
    uptime: () => clock.uptime(),
    setTimer: (delay, callback) => ({ ...clock.setTimer(delay, callback), keepAlive: () => {} }),
  };
}

it('a clock whose timers cannot be told to let the process go has them taken back', async () => {
  const clock = new ManualClock();
  const set: string[] = [];
  const deadlines = new Deadlines({
    now: () => clock.now(),
    wall: () => clock.wall(),
    uptime: () => clock.uptime(),
    setTimer: (delay, callback) => {
      set.push(`set ${delay}`);
      const timer = clock.setTimer(delay, callback);
      return {
        cancel: () => {
          set.push('cancel');
          timer.cancel();
        },
      };
    },
  });
  deadlines.lift(deadlines.set(100, () => {}));
  expect(set).toEqual(['set 100', 'cancel']);
});

it.each([true, false])(
  'keeps the process alive while any is pending only where it shall: %s',
  (keepAlive) => {
    const clock = new ManualClock();
    const kept: (boolean | undefined)[] = [];
    const deadlines = new Deadlines(
      {
        now: () => clock.now(),
        wall: () => clock.wall(),
        uptime: () => clock.uptime(),
        setTimer: (delay, callback, options) => {
          kept.push(options?.keepAlive);
          return { ...clock.setTimer(delay, callback), keepAlive: (on) => kept.push(on) };
        },
      },
      { keepAlive },
    );
    deadlines.lift(deadlines.set(100, () => {}));
    deadlines.set(100, () => {});
    // The alarm that lapsed serves again.
    expect([kept[0], kept.at(-1), clock.timers]).toEqual([keepAlive, keepAlive, 1]);
  },
);
