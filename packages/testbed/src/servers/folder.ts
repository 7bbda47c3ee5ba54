import { randomBytes } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { supervisor } from '../supervisor/supervisor.js';

/** A new temporary folder that goes with this process, however that ends. */
export async function ownFolder(name: string): Promise<string> {
  const path = join(tmpdir(), `holdfast-${name}-${randomBytes(6).toString('hex')}`);
  // Owned before it exists: whenever we are killed, it is removed.
  supervisor().tell({ type: 'own', path });
  await mkdir(path, { mode: 0o700 });
  return path;
}

export async function removeFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  supervisor().tell({ type: 'disown', path });
}

export async function writeFiles(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text, { mode: 0o600 });
  }
}
