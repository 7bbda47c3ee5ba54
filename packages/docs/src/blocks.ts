/**
 * A page is written by hand but for its generated blocks:
 *
 *     <!-- generated: speed -->
 *     …
 *     <!-- end -->
 *
 * Replaces what stands between these lines.
 *
 * @param blocks what goes into each block, by its name
 * @throws Error when the page asks for a block that is not there
 */
export function fillBlocks(page: string, blocks: Readonly<Record<string, () => string>>): string {
  return page.replace(BLOCK, (_whole, name: string) => {
    const block = blocks[name];
    if (block === undefined)
      throw new Error(`no block is named ${name}: one of ${Object.keys(blocks).join(', ')}`);
    return `<!-- generated: ${name} -->\n\n${block().trim()}\n\n<!-- end -->`;
  });
}

const BLOCK = /<!-- generated: ([\w-]+) -->[\s\S]*?<!-- end -->/g;
