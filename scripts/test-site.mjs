/** `npm run test:site`: builds the documentation site and tests it in a headless browser. Not a part of `npm test`. */
import { build, fail, install, pnpm, root, run } from './workspace.mjs';

await install();
const found = await run(process.execPath, [`${root}/scripts/install-servers.mjs`, 'chromium']);
if (found !== 0) fail('there is no browser to test the site in');
await build('--filter=@holdfast/core...');
if ((await pnpm('--filter', '@holdfast/site', 'run', 'site')) !== 0) fail('the site cannot be built');
process.exitCode = await run(process.execPath, ['--test', `${root}/docs/test/site.test.mjs`]);
