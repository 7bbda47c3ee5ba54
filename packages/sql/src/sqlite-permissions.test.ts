import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startWorker, type Worker } from '@holdfast/testbed';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';

// Starting a process takes seconds on a machine that is busy with many.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let folder: string;
let worker: Worker;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-sqlite-'));
  const made = (name: string): string => {
    mkdirSync(join(folder, name));
    return join(folder, name);
  };
  // An empty file is a sound database.
  writeFileSync(join(made('read-only'), 'locks.db'), '');
  chmodSync(join(folder, 'read-only', 'locks.db'), 0o444);
  chmodSync(join(folder, 'read-only'), 0o755);
  chmodSync(made('closed'), 0o555);
  chmodSync(made('secret'), 0o000);
  writeFileSync(join(folder, 'a-file'), '');
  chmodSync(folder, 0o755);
  worker = await startWorker(new URL('./test-worker.mjs', import.meta.url));
  await worker.call('beOrdinary');
});
afterAll(async () => {
  await worker.kill();
  for (const name of ['closed', 'secret']) chmodSync(join(folder, name), 0o700);
  rmSync(folder, { recursive: true });
});

it.each([
  ['a file that may only be read', 'read-only/locks.db'],
  ['a new file in a folder that may only be read', 'closed/locks.db'],
  ['a new folder in one that may only be read', 'closed/new/locks.db'],
  ['a file in a folder that may not be entered', 'secret/locks.db'],
  ['a new folder in one that may not be entered', 'secret/new/locks.db'],
  ['a folder that is a file', 'a-file/locks.db'],
  ['a folder in one that is a file', 'a-file/new/locks.db'],
])('%s is refused at once, with what to do', async (_, path) => {
  await expect(worker.call('open', { url: `sqlite:${join(folder, path)}` })).rejects.toMatchObject({
    code: 'BACKEND_REFUSED',
    message: expect.stringContaining('this user must be able to write the file and its folder'),
  });
});
