import { access, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { ConfigError } from '../errors.js';
import type { FoundConfig } from './config.js';
import { embeddedDefault } from './embedded.js';
import { CONFIG_EXTENSIONS, readConfig } from './read.js';

/**
 * The configuration of a process that named none: `HOLDFAST_URL`, then `HOLDFAST_CONFIG` or the nearest
 * `holdfast.config.*`, then the embedded default.
 *
 * @throws ConfigError
 */
export async function findConfig(): Promise<FoundConfig> {
  const { HOLDFAST_URL: url, HOLDFAST_CONFIG: named } = process.env;
  if (url) return { value: url, origin: { label: 'HOLDFAST_URL' } };
  if (named) return readConfig(resolve(named), 'HOLDFAST_CONFIG');
  const file = await nearestFile(process.cwd());
  return file === undefined ? embeddedDefault() : readConfig(file);
}

/** The configuration in a file that the caller named. */
export function configIn(file: string): Promise<FoundConfig> {
  return readConfig(resolve(file), 'configFile');
}

/** The nearest config file, looking upwards no further than the nearest `package.json` or `.git`. */
async function nearestFile(start: string): Promise<string | undefined> {
  for (const folder of await searched(start)) {
    for (const extension of CONFIG_EXTENSIONS) {
      const file = join(folder, `holdfast.config.${extension}`);
      if (await isFile(file)) return file;
    }
  }
  return undefined;
}

/** The folders from `start` up to the one that bounds the project; without such a bound `start` alone. */
async function searched(start: string): Promise<readonly string[]> {
  const folders: string[] = [];
  for (let folder = start; ; folder = dirname(folder)) {
    folders.push(folder);
    if ((await exists(join(folder, 'package.json'))) || (await exists(join(folder, '.git')))) return folders;
    if (dirname(folder) === folder) return [start];
  }
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile();
  } catch (error) {
    // Anything else (no permission, a link that loops) must not silently choose another backend.
    if (isAbsent(error)) return false;
    throw new ConfigError(`${path} cannot be looked at: ${(error as Error).message}`, { cause: error });
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

function isAbsent(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === 'ENOENT' || code === 'ENOTDIR';
}
