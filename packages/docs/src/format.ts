import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from './workspace.js';

/** Formats a page as the repository's formatter does, so that a generated page passes its check. */
export function format(path: string, content: string): string {
  const biome = join(root, 'node_modules/@biomejs/biome/bin/biome');
  const { status, stdout, stderr, error } = spawnSync(
    process.execPath,
    [biome, 'format', `--stdin-file-path=${path}`],
    { cwd: root, input: content, encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`biome cannot format ${path}: ${stderr}`, { cause: error });
  return stdout;
}
