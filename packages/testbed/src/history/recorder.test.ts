import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { formatHistory, HISTORY_EXTENSION, mergeHistories, parseHistory, readHistoryFolder } from './read.js';
import { monotonicNow, observe, Recorder } from './recorder.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-recorder-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const fileOf = (name: string): string => join(folder, `${name}${HISTORY_EXTENSION}`);

test('what several processes append comes back merged by time', () => {
  const first = new Recorder(fileOf('p1'), 'p1');
  const second = new Recorder(fileOf('p2'), 'p2');
  first.append({ type: 'invoke', op: first.nextOp(), action: 'acquire', name: 'a', queue: true, ttl: 5 });
  second.append({ type: 'fault', phase: 'heal', id: 'x' });
  first.append({ type: 'fail', op: 1, reason: 'contended' });
  first.close();
  second.close();
  const events = readHistoryFolder(folder);
  expect(events.map(({ process, type }) => `${process} ${type}`)).toEqual([
    'p1 invoke',
    'p2 fault',
    'p1 fail',
  ]);
  expect(events.map(({ at }) => at)).toEqual(events.map(({ at }) => at).sort((a, b) => a - b));
});

test('a line is in the file as soon as append returns, for kill -9 may come next', () => {
  const recorder = new Recorder(fileOf('p1'), 'p1');
  recorder.append({ type: 'fault', phase: 'heal', id: 'x' });
  expect(readFileSync(fileOf('p1'), 'utf8').split('\n')).toHaveLength(2);
  recorder.close();
});

test('a late signal after close is not an error', () => {
  const recorder = new Recorder(fileOf('p1'), 'p1');
  recorder.close();
  recorder.append({ type: 'lost', name: 'a', owner: 'o', reason: 'expired' });
  recorder.close();
  expect(readHistoryFolder(folder)).toEqual([]);
});

test('a last line that was cut off does not count; one in the middle is an error', () => {
  const [whole] = parseHistory('{"at":1,"process":"p","type":"fail","op":1,"reason":"x"}\n{"at":2,"pro');
  expect(whole).toMatchObject({ at: 1 });
  writeFileSync(fileOf('p1'), '{"at":1,"pro\n{"at":2}\n');
  expect(() => readHistoryFolder(folder)).toThrow(/p1.*line 1 is not JSON/);
});

test('events of one process keep their order where times are equal', () => {
  const event = (op: number) => ({ at: 1, process: 'p', type: 'fail', op, reason: '' }) as const;
  const merged = mergeHistories([[{ ...event(9), process: 'q' }], [event(1), event(2), event(3)]]);
  expect(merged.filter(({ process }) => process === 'p')).toEqual([event(1), event(2), event(3)]);
  expect(parseHistory(formatHistory(merged))).toEqual(merged);
});

test('an observation claims no time that the handle did not claim', () => {
  const before = monotonicNow();
  const slow = {
    remaining() {
      const end = performance.now() + 20;
      while (performance.now() < end);
      return 10;
    },
  };
  const { from, until } = observe(slow);
  // The reading took longer than what remained: nothing is claimed.
  expect(until).toBeLessThan(from);
  expect(until).toBeGreaterThanOrEqual(before + 10);
});
