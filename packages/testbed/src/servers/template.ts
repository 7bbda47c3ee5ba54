import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { access, mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ownFolder, removeFolder } from './folder.js';
import { accountOf, giveTo } from './local.js';

export const run = promisify(execFile);

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/templates', import.meta.url));

export interface Template {
  readonly name: string;
  /** What the content depends on, such as the server's version. */
  readonly key: string;
  readonly user: string;
  /** Fills an empty folder that belongs to the user. */
  readonly make: (folder: string) => Promise<void>;
}

/**
 * Copies a data folder that was initialised once: initdb and its like take seconds, a copy takes none. Several
 * processes may make the template at the same time; one of them wins.
 */
export async function copyTemplate(template: Template, target: string): Promise<void> {
  const digest = createHash('sha256').update(template.key).digest('hex').slice(0, 16);
  const cached = join(CACHE, `${template.name}-${digest}`);
  if (!(await exists(cached))) await makeTemplate(template, cached);
  await run('cp', ['-R', '-p', cached, target]);
}

async function makeTemplate(template: Template, cached: string): Promise<void> {
  const work = await ownFolder(`${template.name}-template`);
  const candidate = `${cached}-${randomBytes(6).toString('hex')}`;
  try {
    const folder = join(work, 'data');
    await mkdir(folder, { mode: 0o700 });
    await giveTo(template.user, work);
    await template.make(folder);
    await mkdir(CACHE, { recursive: true });
    await run('cp', ['-R', '-p', folder, candidate]);
    await rename(candidate, cached);
  } catch (error) {
    await rm(candidate, { recursive: true, force: true });
    if (!(await exists(cached))) throw error;
  } finally {
    await removeFolder(work);
  }
}

/** Options for `run` that make it run as the account, when we are root. */
export function as(user: string): { uid?: number; gid?: number; cwd: string } {
  return { cwd: '/', ...accountOf(user) };
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
