import { existsSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { codeBlocks } from './code-blocks.js';
import { read, root } from './workspace.js';

/** Links of a page that lead nowhere within the repository. Links to elsewhere are not followed. */
export function deadLinks(page: string): string[] {
  return linksOf(page).filter((link) => !leadsSomewhere(page, link));
}

/** Targets of links and pictures; nothing out of code. */
export function linksOf(page: string): string[] {
  const text = withoutCode(read(page));
  const markdown = [...text.matchAll(/\]\(([^)\s]+)\)/g)];
  const home = [...text.matchAll(/^\s+link: (\/\S*)$/gm)];
  return [...markdown, ...home].map(([, target = '']) => target).filter((target) => !/^[a-z]+:/.test(target));
}

function leadsSomewhere(page: string, link: string): boolean {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? page : resolve(page, path);
  // Made from the sources when the site is built; the site's own build checks links into it.
  if (target?.startsWith('docs/api/')) return true;
  if (target === undefined) return false;
  if (anchor === undefined || anchor.endsWith('-mode-only')) return true;
  return target.endsWith('.md') && anchorsOf(target).includes(anchor);
}

function resolve(page: string, path: string): string | undefined {
  const bare = path.startsWith('/') ? join('docs', path) : normalize(join(dirname(page), path));
  if (bare.startsWith('docs/api')) return `${bare}/`;
  return [bare, `${bare}.md`, join(bare, 'index.md'), join(bare, 'README.md')].find((candidate) => {
    const absolute = join(root, candidate);
    return existsSync(absolute) && (statSync(absolute).isFile() || candidate === bare);
  });
}

function anchorsOf(page: string): string[] {
  return [...withoutCode(read(page)).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => slug(heading));
}

/** As the site and the places that show the repository make anchors of plain headings. */
function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[`*_]/g, '')
    .replace(/[^\p{L}\p{N}\s-]/gu, '')
    .trim()
    .replace(/\s+/g, '-');
}

function withoutCode(text: string): string {
  return text
    .replace(/^```[\s\S]*?^```$/gm, '')
    .replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]()]/g, ''));
}

/** For the tests of a translation: what must be the same in both. */
export function skeleton(page: string): {
  code: string[];
  links: string[];
  headings: string[];
  rows: number;
} {
  const text = withoutCode(read(page));
  return {
    // Comments are translated.
    code: codeBlocks(page).map(({ code }) => code.replace(/\s*(\/\/|#).*$/gm, '').trim()),
    links: [...text.matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target = '']) => target)
      .filter((target) => !/^#|README/.test(target))
      .sort(),
    headings: [...text.matchAll(/^(#+) /gm)].map(([, level = '']) => level),
    rows: [...text.matchAll(/^\|/gm)].length,
  };
}
