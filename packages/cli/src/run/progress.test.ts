import { PassThrough } from 'node:stream';
import { connect, type Locks } from '@holdfast/core';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { StatusLine } from '../output.js';
import { Progress } from './progress.js';

let locks: Locks;

beforeEach(async () => {
  locks = await connect('memory:');
});

afterEach(() => locks.close());

/** A terminal that keeps what was written to it. */
class Terminal extends PassThrough {
  written = '';
  readonly columns: number;

  constructor(columns: number) {
    super();
    this.columns = columns;
    this.setEncoding('utf8').on('data', (text: string) => {
      this.written += text;
    });
  }
}

/** What a terminal shows while somebody waits for a lock. */
async function shownFor(name: string, columns: number): Promise<{ during: string; after: string }> {
  const terminal = new Terminal(columns);
  const hold = await locks.lock(name).acquire();
  const line = new StatusLine(terminal as unknown as NodeJS.WriteStream);
  const progress = new Progress(locks, name, line);
  const waiting = new Promise((resolve) => locks.on('waiting', resolve));
  const waiter = locks.lock(name).acquire();
  await waiting;
  const during = terminal.written;
  progress.stop();
  await hold.release();
  await (await waiter).release();
  return { during, after: terminal.written.slice(during.length) };
}

it('shows the name, the place in the queue and the holder, and wipes its line at the end', async () => {
  const { during, after } = await shownFor('job', 200);
  expect(during).toMatch(/^\rwaiting for job \(\d+ms\): place 1, held by [^ ]+:\d+:\w+/);
  expect(during.endsWith('\u001b[K')).toBe(true);
  expect(after).toBe('\r\u001b[K');
});

it('shows a hostile name without its escapes, in one line', async () => {
  const { during } = await shownFor('\u001b]0;owned\u0007\u202e\nevil', 200);
  expect(during).toContain('\\e]0;owned\\u{7}\\u{202e}\\nevil');
  expect([...during].filter((character) => '\u0007\u202e\n'.includes(character))).toEqual([]);
  expect(during.split('\u001b')).toHaveLength(2);
});

it('a long name leaves room for what changes', async () => {
  const { during } = await shownFor('n'.repeat(500), 80);
  expect(during).toMatch(/^\rwaiting for n{25}… \(\d+ms\): place 1, held by /);
  expect(during.length).toBeLessThan(80 + '\r\u001b[K'.length);
});
