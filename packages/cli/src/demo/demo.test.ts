import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Scratch } from '../testing/program.js';
import type { HoldRecord } from './crew.js';
import { faultIn, timeline } from './timeline.js';

let scratch: Scratch;

beforeEach(() => {
  scratch = new Scratch();
});

afterEach(() => scratch.dispose());

it('loses updates without a lock, none under one, and recovers from a killed holder', async () => {
  const end = await scratch.holdfast(['demo', '--workers', '3', '--times', '15', '--json']).exited;
  expect(end).toMatchObject({ code: 0, stderr: '' });
  const { withoutLock, withLock, killedHolder, faults } = JSON.parse(end.stdout);
  expect(withoutLock.counted).toBeLessThan(45);
  expect(withLock).toMatchObject({ expected: 45, counted: 45 });
  expect(killedHolder).toMatchObject({ expected: 32, counted: 32 });
  expect(
    killedHolder.holds.filter((hold: { killedAt?: number }) => hold.killedAt !== undefined),
  ).toHaveLength(1);
  expect(faults).toEqual([]);
}, 60_000);

it('runs on the embedded default, and says which file that is', async () => {
  const program = scratch.holdfast(['demo', '--workers', '2', '--times', '3'], {
    HOLDFAST_URL: undefined,
    HOLDFAST_CONFIG: undefined,
    NODE_ENV: undefined,
    XDG_STATE_HOME: scratch.folder,
  });
  const { code, stdout, stderr } = await program.exited;
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('No two held it at once') });
  const file = scratch.path('holdfast/locks.db');
  expect(stderr).toMatch(/^holdfast: no configuration was found: [^\n]*\n$/);
  expect(stderr).toContain(file);
}, 60_000);

describe('the demo’s own check', () => {
  const hold = (worker: number, token: bigint, from: number, to: number): HoldRecord => ({
    worker,
    token,
    from,
    to,
  });

  it('finds holds that overlap, and tokens that do not rise', () => {
    expect(faultIn([hold(1, 1n, 0, 10), hold(2, 2n, 10, 20)])).toBeUndefined();
    expect(faultIn([hold(1, 1n, 0, 10), hold(2, 2n, 9, 20)])).toContain('held at once');
    expect(faultIn([hold(1, 2n, 0, 10), hold(2, 2n, 10, 20)])).toContain('came after');
  });

  it('draws a lane for each worker, with the kill and the wait for the ttl', () => {
    const killed: HoldRecord = { worker: 1, token: 1n, from: 0, killedAt: 100 };
    const [first = '', second = ''] = timeline([killed, hold(2, 2n, 900, 1000)], 2).split('\n');
    expect(first).toMatch(/worker 1 {2}│█+✗·+ +│/);
    expect(second).toMatch(/worker 2 {2}│ +█+│/);
  });
});
