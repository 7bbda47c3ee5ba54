// The built site in a headless browser: every page within its width, the interactive page as a reader plays it.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { lookUp } from '../../scripts/install-servers.mjs';

const dist = fileURLToPath(new URL('../.vitepress/dist', import.meta.url));
const factor = Number(process.env.HOLDFAST_TIME_FACTOR ?? 2);
const TYPES = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.woff2': 'font/woff2',
};

let server;
let origin;
let browser;

before(async () => {
  server = createServer((request, response) => {
    const file = fileOf(new URL(request.url, 'http://site').pathname);
    if (file === undefined) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' });
    response.end(readFileSync(file));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${server.address().port}`;
  browser = await chromium.launch({
    executablePath: lookUp('chromium'),
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
  });
});

after(async () => {
  await browser?.close();
  server?.closeAllConnections();
  server?.close();
});

/** The file behind a path, as hosts with clean URLs serve it. */
function fileOf(path) {
  const bare = join(dist, decodeURIComponent(path));
  return [bare, `${bare}.html`, join(bare, 'index.html')].find((file) => {
    return statSync(file, { throwIfNoEntry: false })?.isFile();
  });
}

const pages = readdirSync(dist, { recursive: true })
  .filter((file) => file.endsWith('.html') && !file.startsWith('api') && file !== '404.html')
  .map((file) => `/${file.replace(/(index)?\.html$/, '')}`)
  .sort();

async function open(path, { width = 1280, colorScheme = 'light' } = {}) {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
  page.setDefaultTimeout(15_000 * factor);
  const errors = [];
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
  page.on('response', (response) => {
    if (response.status() >= 400) errors.push(`${response.status()} ${response.url()}`);
  });
  await page.goto(origin + path, { waitUntil: 'networkidle' });
  return { page, errors };
}

describe('every page', () => {
  for (const path of pages) {
    for (const width of [390, 1280]) {
      test(`${path} fits ${width} px, and loads without an error`, async () => {
        const { page, errors } = await open(path, { width });
        const widths = await page.evaluate(() => [
          document.documentElement.scrollWidth,
          document.documentElement.clientWidth,
        ]);
        assert.ok(widths[0] <= widths[1], `the page is ${widths[0]} px wide in ${widths[1]}`);
        const broken = await page.evaluate(() =>
          [...document.images]
            .filter((image) => image.checkVisibility() && image.complete && image.naturalWidth === 0)
            .map((image) => image.src),
        );
        assert.deepEqual(broken, []);
        assert.deepEqual(errors, []);
        await page.close();
      });
    }
  }
});

describe('pictures', () => {
  test('are shown in the version of the theme', async () => {
    for (const theme of ['light', 'dark']) {
      const { page } = await open('/concepts', { colorScheme: theme });
      const shown = await page.evaluate(() =>
        [...document.querySelectorAll('.vp-doc img')]
          .filter((image) => getComputedStyle(image).display !== 'none')
          .map((image) => image.src.split('#')[1]),
      );
      assert.ok(shown.length > 0);
      assert.deepEqual([...new Set(shown)], [`gh-${theme}-mode-only`]);
      await page.close();
    }
  });
});

describe('the interactive page', () => {
  /** What a reader sees and presses of one client. */
  const part = (page, name) => {
    const card = page.locator(`[data-client="${name}"]`);
    return {
      press: (label) => card.getByRole('button', { name: label, exact: true }).click(),
      is: (activity) => page.locator(`[data-client="${name}"][data-activity="${activity}"]`).waitFor(),
      token: async () => (await card.locator('[data-part="token"]').textContent()) ?? '',
    };
  };
  const says = (page, name, text) =>
    page.locator(`[data-part="${name}"]`).filter({ hasText: text }).first().waitFor();

  async function play() {
    const opened = await open('/playground');
    await opened.page.locator('.playground[data-ready="true"]').waitFor();
    const [ada, ben, cleo] = ['Ada', 'Ben', 'Cleo'].map((name) => part(opened.page, name));
    return { ...opened, ada, ben, cleo };
  }

  test('serves waiters in the order in which they came', async () => {
    const { page, errors, ada, ben, cleo } = await play();
    await ada.press('acquire');
    await ada.is('holding');
    await ben.press('acquire');
    await says(page, 'queue', 'Ben');
    await cleo.press('acquire');
    await says(page, 'queue', 'Ben → Cleo');
    await ada.press('release');
    await ben.is('holding');
    await cleo.is('waiting');
    await says(page, 'holder', 'Ben');
    await ben.press('release');
    await cleo.is('holding');
    await says(page, 'queue', 'empty');
    assert.deepEqual(errors, []);
    await page.close();
  });

  test('lets the next move up when somebody gives up', async () => {
    const { page, ada, ben, cleo } = await play();
    await ada.press('acquire');
    await ada.is('holding');
    await ben.press('acquire');
    await says(page, 'queue', 'Ben');
    await cleo.press('acquire');
    await says(page, 'queue', 'Ben → Cleo');
    await ben.press('give up');
    await ben.is('idle');
    await page.waitForFunction(() => document.querySelector('[data-part="queue"]')?.textContent === 'Cleo');
    await page.close();
  });

  test('refuses the write of a holder that was paused past its ttl', async () => {
    const { page, errors, ada, ben } = await play();
    await ada.press('acquire');
    await ada.is('holding');
    await ada.press('write');
    await says(page, 'value', 'written by Ada');
    await ada.press('pause');
    await ben.press('acquire');
    await ben.is('waiting');
    // Until Ada's ttl has run out.
    await ben.is('holding');
    await ben.press('write');
    await says(page, 'value', 'written by Ben');
    assert.notEqual(await ada.token(), await ben.token());
    await ada.press('come back');
    await ada.is('lost');
    await says(page, 'refused', '1');
    await says(page, 'value', 'written by Ben');
    await says(page, 'log', 'the resource refuses Ada');
    await ada.press('release');
    await says(page, 'holder', 'Ben');
    assert.deepEqual(errors, []);
    await page.close();
  });
});
