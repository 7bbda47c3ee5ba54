/**
 * Runs the examples, each on a SQLite file of its own:
 *
 *   node scripts/examples.mjs [names]
 */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { root, run } from './workspace.mjs';

const folder = join(root, 'examples');

/** The folders with something to run. */
export const EXAMPLES = readdirSync(folder).filter((name) => existsSync(join(folder, name, 'index.mjs')));

/** Runs one example. Resolves to its exit code. */
export async function example(name) {
  const scratch = mkdtempSync(join(tmpdir(), 'holdfast-examples-'));
  const url = pathToFileURL(join(scratch, 'locks.db')).href.replace('file://', 'sqlite:');
  try {
    return await run(process.execPath, ['index.mjs'], {
      cwd: join(folder, name),
      env: { ...process.env, HOLDFAST_URL: url },
      timeout: 120_000,
    });
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const asked = process.argv.length > 2 ? process.argv.slice(2) : EXAMPLES;
  for (const name of asked) {
    console.log(`\n── ${name}`);
    const code = await example(name);
    if (code === 0) continue;
    console.error(`The example ${name} failed (exit code ${code}).`);
    process.exitCode = 1;
  }
}
