import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeConformance } from '@holdfast/conformance';
import { afterAll } from 'vitest';
import { createBackend } from './index.js';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-sqlite-'));
const url = `sqlite:${join(folder, 'locks.db')}`;
afterAll(() => rmSync(folder, { recursive: true }));

describeConformance('sqlite', {
  create: ({ prefix }) => createBackend({ url, prefix }),
  child: { url },
});
