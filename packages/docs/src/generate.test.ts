import { describe, expect, it } from 'vitest';
import { fillBlocks } from './blocks.js';
import { data } from './data.js';
import { GENERATED, pictures, render } from './generate.js';
import { capabilitiesOf } from './record.js';
import { read } from './workspace.js';

describe('generated pages', () => {
  it.each(Object.keys(GENERATED))(
    '%s follows from its inputs as they are (else: pnpm docs:generate)',
    (path) => {
      expect(read(path)).toBe(render(path));
    },
  );

  it.each([...pictures()])('%s is as it is drawn', (path, picture) => {
    expect(read(path)).toBe(picture);
  });

  it('differ as soon as an input differs', () => {
    const page = 'before\n\n<!-- generated: one -->\n\n1\n\n<!-- end -->\n';
    expect(fillBlocks(page, { one: () => '1' })).toBe(page);
    expect(fillBlocks(page, { one: () => '2' })).not.toBe(page);
  });

  it('ask only for blocks that exist', () => {
    expect(() => fillBlocks('<!-- generated: two -->\n<!-- end -->', {})).toThrow('no block is named two');
  });

  it.each(['memory', 'sqlite'] as const)('show what %s declares', async (topology) => {
    expect(data('capabilities')[topology]).toEqual(await capabilitiesOf(topology));
  });
});
