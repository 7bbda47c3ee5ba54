import { describe, expect, it } from 'vitest';
import { allBlocks, type CodeBlock, compileBlocks } from './code-blocks.js';

const block = (code: string): CodeBlock => ({ page: 'a.md', line: 5, language: 'ts', name: undefined, code });

describe('code in the documentation', () => {
  it('compiles against the packages', { timeout: 120_000 }, () => {
    const blocks = allBlocks('ts');
    expect(blocks.length).toBeGreaterThan(10);
    expect(compileBlocks(blocks)).toEqual([]);
  });

  it('is told by page and line where it does not', { timeout: 120_000 }, () => {
    const wrong = block('const maybe = await lock.tryAcquire();\nmaybe.release();');
    expect(compileBlocks([wrong])).toEqual(["a.md:6: 'maybe' is possibly 'null'."]);
  });
});
