import { describe, expect, it } from 'vitest';
import { deadLinks, linksOf, skeleton } from './links.js';
import { pages } from './workspace.js';

describe('links', () => {
  it.each(pages())('of %s lead somewhere', (page) => {
    expect(deadLinks(page)).toEqual([]);
  });

  it('are found', () => {
    expect(pages().flatMap(linksOf).length).toBeGreaterThan(50);
  });
});

describe('the translated README', () => {
  it('has the same code, links, headings and tables', () => {
    expect(skeleton('README.zh-CN.md')).toEqual(skeleton('README.md'));
  });
});
