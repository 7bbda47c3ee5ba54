import { describe, expect, it } from 'vitest';
import { ManualClock } from './testing/manual-clock.js';
import { SuspensionAwareClock, validUntil } from './validity.js';

describe('validity', () => {
  it('counts from the send, less 1 % and 2 ms', () => {
    expect(validUntil(500, 10_000)).toBe(500 + 10_000 - 100 - 2);
  });
});

describe('the clock of validity', () => {
  it('does not follow a wall clock that is set by hand, forwards or backwards', () => {
    const manual = new ManualClock();
    const clock = new SuspensionAwareClock(manual);
    const before = clock.now();
    manual.setWall(3_600_000);
    expect(clock.now()).toBe(before);
    manual.setWall(-7_200_000);
    expect(clock.now()).toBe(before);
  });

  it('counts the time that the machine was suspended', () => {
    const manual = new ManualClock();
    const clock = new SuspensionAwareClock(manual);
    const before = clock.now();
    manual.suspend(45_000);
    expect(clock.now()).toBe(before + 45_000);
    manual.freeze(5);
    expect(clock.now()).toBe(before + 45_005);
  });

  it('counts a suspension that comes after the wall clock was set back', () => {
    const manual = new ManualClock();
    const clock = new SuspensionAwareClock(manual);
    const before = clock.now();
    manual.setWall(-3_600_000);
    clock.now();
    manual.suspend(10_000);
    expect(clock.now()).toBe(before + 10_000);
  });

  it('counts a suspension once, though the wall clock is set as well', () => {
    const manual = new ManualClock();
    const clock = new SuspensionAwareClock(manual);
    const before = clock.now();
    manual.suspend(10_000);
    clock.now();
    manual.setWall(60_000);
    expect(clock.now()).toBe(before + 10_000);
  });

  it('counts a suspension during which the wall clock was set back', () => {
    const manual = new ManualClock();
    const clock = new SuspensionAwareClock(manual);
    const before = clock.now();
    manual.suspend(10_000);
    manual.setWall(-3_600_000);
    expect(clock.now()).toBe(before + 10_000);
  });

  it('counts suspensions that are short and many', () => {
    const manual = new ManualClock();
    const clock = new SuspensionAwareClock(manual);
    const before = clock.now();
    for (let time = 0; time < 20; time++) {
      manual.suspend(15);
      clock.now();
    }
    expect(clock.now() - before).toBeGreaterThanOrEqual(300 - 20);
    expect(clock.now() - before).toBeLessThanOrEqual(300);
  });
});
