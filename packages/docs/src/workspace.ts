import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository's root, with a slash at its end. */
export const root = fileURLToPath(new URL('../../..', import.meta.url));

/** Reads a text file by its path from the root. */
export function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

const LEFT_OUT = new Set(['node_modules', 'dist', 'cache', 'api', '.git']);

/** Paths from the root of all files under a folder that end so, in order; nothing that is installed or built. */
export function filesUnder(folder: string, ending: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter(({ name }) => !LEFT_OUT.has(name))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return filesUnder(path, ending);
      return entry.name.endsWith(ending) ? [path] : [];
    })
    .map((path) => relative(root, join(root, path)))
    .sort();
}

/** Everything that people read: the site's pages and the files at the root and in the packages that they meet first. */
export function pages(): string[] {
  return [
    'README.md',
    'README.zh-CN.md',
    'CONTRIBUTING.md',
    ...filesUnder('docs', '.md'),
    ...filesUnder('examples', '.md'),
    ...filesUnder('packages', '.md').filter((path) => !path.endsWith('CHANGELOG.md')),
  ];
}
