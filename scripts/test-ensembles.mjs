/** `npm run test:ensembles`: the suites against whole ensembles and database servers, which want a machine of their own. */
import { build, install, root, run } from './workspace.mjs';

await install();
await run(process.execPath, [`${root}/scripts/install-servers.mjs`]);
await build();
process.exitCode = await run(
  process.execPath,
  ['node_modules/vitest/vitest.mjs', 'run', ...process.argv.slice(2)],
  {
    env: {
      ...process.env,
      HOLDFAST_TEST_ENSEMBLES: '1',
      HOLDFAST_TIME_FACTOR: process.env.HOLDFAST_TIME_FACTOR ?? '2',
    },
  },
);
