// Writes src/scripts.generated.ts from src/scripts/*.lua, so that the built package needs no files beside its modules.
// With --check it only says whether that file is fresh.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

const folder = new URL('../src/scripts/', import.meta.url);
const target = new URL('../src/scripts.generated.ts', import.meta.url);

const read = (file) => readFileSync(new URL(file, folder), 'utf8');

/** A file whose name starts with an underscore is not a script: others include it. */
const isScript = (file) => file.endsWith('.lua') && !file.startsWith('_');

const source = (file) => read(file).replace(/^-- @include (\S+)\n/gm, (_, included) => read(included));

const constant = (file) => file.replace('.lua', '').replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

const literal = (text) => `\`${text.replace(/[\\`]|\$\{/g, '\\$&')}\``;

const render = (file) => {
  const text = source(file);
  const sha = createHash('sha1').update(text).digest('hex');
  return `
export const ${constant(file)}: Script = {
  sha: '${sha}',
  source: ${literal(text)},
};
`;
};

const text = `// Made from scripts/*.lua by scripts/embed-lua.mjs. Change those, then run: pnpm --filter @holdfast/redis build
import type { Script } from './script.js';
${readdirSync(folder).filter(isScript).sort().map(render).join('')}`;

if (process.argv.includes('--check')) {
  if (readFileSync(target, 'utf8') !== text) {
    console.error('src/scripts.generated.ts is not what src/scripts/*.lua says: run the build');
    process.exitCode = 1;
  }
} else {
  writeFileSync(target, text);
}
