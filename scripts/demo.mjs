/** `npm run demo`: installs, builds, and shows what a lock does, on a SQLite file and nothing else. */
import { build, install, root, run } from './workspace.mjs';

await install();
// With `...` behind the name it would be every package, since the workspace itself depends on them all; what a package
// needs is built before it anyway.
await build('--filter=holdfast');
process.exitCode = await run(process.execPath, [
  `${root}/packages/cli/dist/main.js`,
  'demo',
  ...process.argv.slice(2),
]);
