import { execFile } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type RedisHandle, startRedis } from '@holdfast/testbed';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { codeBlocks } from './code-blocks.js';
import { root } from './workspace.js';

const WRITTEN_URL = 'redis://127.0.0.1:6379';
const named = codeBlocks('docs/quick-start.md').filter(({ name }) => name !== undefined);
const PRINTED: Readonly<Record<string, RegExp>> = {
  'hold.mjs': /^held by \S+, token \d+, \d+(\.\d+)? ms left\n$/,
  'run.mjs': /^done under token \d+\n$/,
  'try.mjs': /nightly-report/,
};

let server: RedisHandle;

beforeAll(async () => {
  server = await startRedis({ own: true });
});

afterAll(() => server.stop());

describe('the quick start', () => {
  it('has these programs', () => {
    expect(named.map(({ name }) => name).sort()).toEqual(Object.keys(PRINTED).sort());
  });

  it('takes three lines from npm to a held lock', () => {
    const [first] = named;
    const lines = first?.code.split('\n\n')[0]?.trim().split('\n') ?? [];
    expect(lines).toHaveLength(3);
    expect(lines.at(-1)).toContain('acquire()');
    // The first page shows the same.
    expect(codeBlocks('docs/index.md').at(-1)?.code.trim().split('\n')).toEqual(lines);
  });

  it.each(named.map(({ name = '', code }) => [name, code]))(
    'runs %s as it is written',
    async (name, code) => {
      // Within a package, so that imports are found as in an application that has installed them.
      const file = join(root, `packages/docs/quick-start-${process.pid}-${name}`);
      expect(code).toContain(WRITTEN_URL);
      await writeFile(file, code.replaceAll(WRITTEN_URL, `${server.url}?prefix=${name.replace('.mjs', '')}`));
      try {
        const { stdout, stderr } = await promisify(execFile)(process.execPath, [file], {
          cwd: join(root, 'packages/docs'),
          timeout: 20_000,
        });
        expect(stdout).toMatch(PRINTED[name] ?? /^$/);
        expect(stderr).toBe('');
      } finally {
        await rm(file, { force: true });
      }
    },
  );
});
