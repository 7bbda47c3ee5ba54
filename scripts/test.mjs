/**
 * `npm test`: installs, builds, finds or installs the servers, runs everything, and ends with `N passed, N failed`.
 *
 * Every step runs, whatever the ones before it said, so that one run tells all that is wrong.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { EXAMPLES, example } from './examples.mjs';
import { build, install, root, run, tool } from './workspace.mjs';

const results = `${root}/.holdfast`;
const outcome = { passed: 0, failed: 0 };
const failures = [];

/** One check that counts as one test. */
async function step(name, check) {
  console.log(`\n── ${name}`);
  const code = await check();
  if (code === 0) {
    outcome.passed++;
    return;
  }
  outcome.failed++;
  failures.push(`${name} (exit code ${code})`);
}

/** The tests themselves count one by one. */
async function tests() {
  console.log('\n── tests');
  rmSync(`${results}/tests.json`, { force: true });
  const reporters = ['--reporter=dot', '--reporter=json', `--outputFile.json=${results}/tests.json`];
  const code = await tool('vitest', 'run', ...reporters);
  try {
    const report = JSON.parse(readFileSync(`${results}/tests.json`, 'utf8'));
    outcome.passed += report.numPassedTests;
    outcome.failed += report.numFailedTests;
    if (report.numPendingTests + report.numTodoTests > 0) {
      outcome.failed++;
      failures.push(`${report.numPendingTests + report.numTodoTests} tests did not run`);
    }
    // A file that does not load, or an error outside any test, fails no test by name.
    if (code !== 0 && report.numFailedTests === 0) {
      outcome.failed++;
      failures.push('a test file did not load, or an error was thrown outside the tests');
    }
  } catch (error) {
    outcome.failed++;
    failures.push(`the tests left no report: ${error.message}`);
  }
  if (code !== 0) failures.push('tests (listed above)');
}

const folders = readdirSync(`${root}/packages`).filter((name) => {
  const { private: hidden } = JSON.parse(readFileSync(`${root}/packages/${name}/package.json`, 'utf8'));
  return hidden !== true;
});

mkdirSync(results, { recursive: true });
await install();
await run(process.execPath, [`${root}/scripts/install-servers.mjs`]);
await build();
await step('format and lint', () => tool('biome', 'ci', '.'));
await step('types of the tests', () => tool('tsc', '-p', 'tsconfig.test.json'));
for (const name of folders) {
  await step(`package ${name}: publint`, () =>
    tool('publint', '--strict', '--pack', 'npm', `packages/${name}`),
  );
  await step(`package ${name}: types`, () =>
    tool('attw', '--pack', `packages/${name}`, '--profile', 'esm-only', '--quiet'),
  );
}
await tests();
await step('mutants', () => run(process.execPath, ['packages/conformance/dist/mutants/run.js']));
for (const name of EXAMPLES) await step(`example ${name}`, () => example(name));

for (const failure of failures) console.error(`failed: ${failure}`);
console.log(`\n${outcome.passed} passed, ${outcome.failed} failed`);
process.exitCode = outcome.failed === 0 && outcome.passed > 0 ? 0 : 1;
