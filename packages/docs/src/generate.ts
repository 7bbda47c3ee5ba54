import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fillBlocks } from './blocks.js';
import { comparisonBlocks } from './comparison.js';
import { format } from './format.js';
import { reliabilityBlocks } from './reliability.js';
import { read, root } from './workspace.js';

/** The pages that have generated blocks. */
export const GENERATED: Readonly<Record<string, Readonly<Record<string, () => string>>>> = {
  'docs/comparison.md': comparisonBlocks,
  'docs/reliability.md': reliabilityBlocks,
};

/** A page as it follows from its inputs now. */
export function render(path: string): string {
  return format(path, fillBlocks(read(path), GENERATED[path] ?? {}));
}

/** Writes every generated page anew. */
export function generate(): void {
  for (const path of Object.keys(GENERATED)) writeFileSync(join(root, path), render(path));
}
