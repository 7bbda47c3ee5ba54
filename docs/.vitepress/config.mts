import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';

const folder = fileURLToPath(new URL('..', import.meta.url));

const BACKENDS: Readonly<Record<string, string>> = {
  memory: 'Memory',
  redis: 'Redis',
  'redis-quorum': 'Redis quorum',
  etcd: 'etcd',
  zookeeper: 'ZooKeeper',
  sql: 'PostgreSQL, MySQL, MariaDB, SQLite',
};

/** The backends' pages that are there, in the order of the list above. */
function backends(): { text: string; link: string }[] {
  return Object.entries(BACKENDS)
    .filter(([name]) => existsSync(`${folder}/backends/${name}.md`))
    .map(([name, text]) => ({ text, link: `/backends/${name}` }));
}

/** The API reference is made from the sources before the site is built. */
function api(): { text: string; link: string }[] {
  if (!existsSync(`${folder}/api/@holdfast`)) return [];
  return readdirSync(`${folder}/api/@holdfast`).map((name) => ({
    text: `@holdfast/${name}`,
    link: `/api/@holdfast/${name}/`,
  }));
}

const WIDE = ['comparison.md', 'reliability.md'];

export default defineConfig({
  title: 'Holdfast',
  description: 'Distributed locks for Node.js: one interface, the same promises on every backend.',
  head: [['link', { rel: 'icon', href: '/favicon.svg', type: 'image/svg+xml' }]],
  cleanUrls: true,
  lastUpdated: false,
  srcExclude: ['data/**', 'test/**'],
  markdown: { theme: { light: 'github-light-high-contrast', dark: 'github-dark' } },
  vite: { build: { chunkSizeWarningLimit: 900 } },
  // Pages of wide tables have the whole width.
  transformPageData(page) {
    if (WIDE.includes(page.relativePath)) page.frontmatter['aside'] = false;
  },
  themeConfig: {
    logo: '/favicon.svg',
    search: { provider: 'local' },
    outline: { level: [2, 3] },
    nav: [
      { text: 'Quick start', link: '/quick-start' },
      { text: 'Concepts', link: '/concepts' },
      { text: 'Comparison', link: '/comparison' },
      { text: 'Try it', link: '/playground' },
      { text: 'API', link: '/api/' },
    ],
    sidebar: [
      {
        text: 'Start',
        items: [
          { text: 'Quick start', link: '/quick-start' },
          { text: 'What a lock can promise', link: '/concepts' },
          { text: 'When not to use one', link: '/when-not' },
          { text: 'Pitfalls', link: '/pitfalls' },
          { text: 'Try it in the browser', link: '/playground' },
        ],
      },
      {
        text: 'Backends',
        items: [
          { text: 'Choosing a backend', link: '/choosing' },
          { text: 'Comparison', link: '/comparison' },
          ...backends(),
        ],
      },
      {
        text: 'Using it',
        items: [
          { text: 'Configuration', link: '/configuration' },
          { text: 'The program', link: '/program' },
          { text: 'Observability', link: '/observability' },
          { text: 'Security', link: '/security' },
          { text: 'Migration', link: '/migration' },
        ],
      },
      {
        text: 'Beneath',
        items: [
          { text: 'Reliability', link: '/reliability' },
          { text: 'Writing a backend', link: '/writing-a-backend' },
        ],
      },
      { text: 'API reference', collapsed: true, items: api() },
    ],
    socialLinks: [{ icon: 'github', link: 'https://github.com/holdfast-locks/holdfast' }],
    footer: { message: 'Released under the MIT License.' },
  },
});
