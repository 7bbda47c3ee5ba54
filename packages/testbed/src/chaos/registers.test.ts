import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { HISTORY_EXTENSION, readHistoryFolder } from '../history/read.js';
import { Recorder } from '../history/recorder.js';
import { RegisterClient, RegisterServer } from './registers.js';

let folder: string;
let recorder: Recorder;
let server: RegisterServer;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-registers-'));
  recorder = new Recorder(join(folder, `registers${HISTORY_EXTENSION}`), 'registers');
  server = await RegisterServer.start(join(folder, 'socket'), recorder);
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  recorder.close();
  rmSync(folder, { recursive: true });
});

test('the fenced register refuses tokens older than the newest, for each name by itself', async () => {
  const writer = await RegisterClient.connect(server.path, 'p1');
  const told: string[] = [];
  server.onWrite(({ name, token }) => told.push(`${name} ${token}`));
  const answers = [
    await writer.writeFenced('a', 10n),
    await writer.writeFenced('a', 10n),
    await writer.writeFenced('a', 9n),
    await writer.writeFenced('b', 9n),
    await writer.writeFenced('a', 2n ** 60n + 1n),
    await writer.writeFenced('a', 2n ** 60n),
  ];
  expect(answers).toEqual([true, true, false, true, true, false]);
  expect(told).toEqual(['a 10', 'a 10', 'b 9', `a ${2n ** 60n + 1n}`]);
  await writer.close();
  expect(readHistoryFolder(folder).map((event) => event.type === 'fenced-write' && event.accepted)).toEqual(
    answers,
  );
});

test('the unfenced register takes everything, and shows the updates that were lost', async () => {
  const first = await RegisterClient.connect(server.path, 'p1');
  const second = await RegisterClient.connect(server.path, 'p2');
  const base = await first.readVersion('a');
  await second.update('a', 11n, await second.readVersion('a'));
  await first.update('a', 10n, base);
  await Promise.all([first.close(), second.close()]);
  expect(readHistoryFolder(folder)).toMatchObject([
    { writer: 'p2', base: 0, replaced: 0 },
    { writer: 'p1', base: 0, replaced: 1 },
  ]);
});

test('answers come in the order of the questions', async () => {
  const writer = await RegisterClient.connect(server.path, 'p1');
  const tokens = Array.from({ length: 50 }, (_, index) => BigInt(index % 2 === 0 ? 100 : index));
  const answers = await Promise.all(tokens.map((token) => writer.writeFenced('a', token)));
  expect(answers).toEqual(tokens.map((token) => token === 100n));
  await writer.close();
});
