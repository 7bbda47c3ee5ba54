import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fillBlocks } from './blocks.js';
import { comparisonBlocks } from './comparison.js';
import { format } from './format.js';
import { drawPicture, PICTURES } from './pictures.js';
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

/** The pictures of the pages, light and dark, by their paths. */
export function pictures(): ReadonlyMap<string, string> {
  const themes = ['light', 'dark'] as const;
  return new Map(
    Object.entries(PICTURES).flatMap(([name, picture]) =>
      themes.map((theme) => [`docs/pictures/${name}-${theme}.svg`, drawPicture(picture, theme)] as const),
    ),
  );
}

/** Writes every picture and every generated page anew. */
export function generate(): void {
  for (const [path, picture] of pictures()) writeFileSync(join(root, path), picture);
  for (const path of Object.keys(GENERATED)) writeFileSync(join(root, path), render(path));
}
