import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { expect, test } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../../dist/load/main.js', import.meta.url));
const TIMEOUT = 240_000;

async function load(...args: string[]) {
  return execa('node', [PROGRAM, '--seed', '1', ...args], { reject: false, all: true });
}

test('after thousands of acquisitions on memory everything is where it was', {
  timeout: TIMEOUT,
}, async () => {
  const { exitCode, all } = await load('--backend', 'memory', '--scenario', 'baseline');
  expect(all).toContain('memory × baseline: pass');
  expect(exitCode).toBe(0);
});

test('after thousands of acquisitions on SQLite everything is where it was', {
  timeout: TIMEOUT,
}, async () => {
  const { exitCode, all } = await load('--backend', 'sqlite', '--scenario', 'baseline', '--count', '3000');
  expect(all).toContain('sqlite × baseline: pass');
  expect(exitCode).toBe(0);
});

test('a backend that keeps something of every claim is found out', { timeout: TIMEOUT }, async () => {
  const args = ['--backend', 'sqlite', '--scenario', 'baseline', '--count', '12000', '--mutant', 'hoarder'];
  const { exitCode, all } = await load(...args);
  expect(all).toMatch(/the heap grew by \d+ KiB/);
  expect(exitCode).toBe(1);
});

test('a crowd on memory is served one after the other', { timeout: TIMEOUT }, async () => {
  const { exitCode, all } = await load('--backend', 'memory', '--scenario', 'crowd');
  expect(all).toContain('memory × crowd: pass (served 1000');
  expect(exitCode).toBe(0);
});

test('what makes no sense on a backend is said, with the reason', async () => {
  const { exitCode, all } = await load('--backend', 'memory', '--scenario', 'restart', 'lost-connections');
  expect(all).toContain('memory × restart: does not apply: there is no server');
  expect(all).toContain('memory × lost-connections: does not apply: there are no connections');
  expect(exitCode).toBe(0);
});
