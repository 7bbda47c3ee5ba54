/**
 * What the two commands of the README share. Only Node's own modules: it runs before anything is installed.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The repository's root. */
export const root = fileURLToPath(new URL('..', import.meta.url));

/** The package manager that package.json pins, such as `pnpm@10.0.0`. */
const packageManager = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
).packageManager;

const env = {
  ...process.env,
  TURBO_TELEMETRY_DISABLED: '1',
  DO_NOT_TRACK: '1',
  // Tests on a shared or slow machine: their bounds on time are wide, and one factor widens them further.
  HOLDFAST_TIME_FACTOR: process.env.HOLDFAST_TIME_FACTOR ?? '2',
  npm_config_update_notifier: 'false',
  ...(process.stdout.isTTY ? {} : { NO_COLOR: '1' }),
};

/** Runs a program at the root and shows what it prints. Resolves to its exit code. */
export function run(command, args, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, env, stdio: 'inherit', ...options });
    child.on('error', (error) => {
      console.error(`${command}: ${error.message}`);
      resolve(127);
    });
    child.on('exit', (code, signal) => resolve(code ?? (signal === null ? 1 : 128)));
  });
}

/** Runs the pinned package manager, which nobody needs to have installed. */
export function pnpm(...args) {
  return run('npx', ['--yes', packageManager, ...args]);
}

/** Runs a program of the installed packages. */
export function tool(name, ...args) {
  return run(process.execPath, [binOf(name), ...args]);
}

/** The JavaScript file behind a package's program, which works alike on every system. */
function binOf(name) {
  const folder = new URL(`../node_modules/${PACKAGES[name] ?? name}/`, import.meta.url);
  const { bin } = JSON.parse(readFileSync(new URL('package.json', folder), 'utf8'));
  return fileURLToPath(new URL(typeof bin === 'string' ? bin : bin[name], folder));
}

const PACKAGES = { biome: '@biomejs/biome', tsc: 'typescript', attw: '@arethetypeswrong/cli' };

/** Installs what the lockfile says. Quick when nothing has changed. */
export async function install() {
  const code = await pnpm('install', '--frozen-lockfile', '--prefer-offline', '--reporter=append-only');
  if (code !== 0) fail(`the installation of the packages failed (exit code ${code})`);
}

/** Builds every package; with `--filter=NAME`, one package and what it needs. */
export async function build(...filter) {
  // Started by the package manager, since turbo looks for its program.
  const code = await pnpm('exec', 'turbo', 'run', 'build', '--output-logs=errors-only', ...filter);
  if (code !== 0) fail(`the build failed (exit code ${code})`);
}

/** Ends the command with a reason. */
export function fail(reason) {
  console.error(`\n${reason}`);
  console.log('0 passed, 1 failed');
  process.exit(1);
}
