// `pnpm test:docker`: proves that the tests' servers come from Docker too. Needs an engine that answers; says so and
// fails without one. Where the engine can pull no image, it builds one from the distribution's packages: Redis and
// etcd then stand for the others. Needs the packages installed and built.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root, run } from './workspace.mjs';

const { getContainerRuntimeClient, ImageName } = createRequire(join(root, 'packages/testbed/package.json'))(
  'testcontainers',
);

const client = await connect();
const environment = { ...process.env, HOLDFAST_TEST_PROVIDER: 'docker' };
const pulls = await canPull('redis:7.4-alpine');
if (!pulls) {
  const image = await localImage();
  Object.assign(environment, { HOLDFAST_TEST_REDIS_IMAGE: image, HOLDFAST_TEST_ETCD_IMAGE: image });
}
// Pulled images are of every kind; the built one holds these two.
const servers = pulls ? [] : ['-t', 'Redis|etcd|in Docker'];
// Once as Linux has it, where containers share the machine's network, and once as it is elsewhere.
const shared = await runTests({}, servers);
const published = await runTests({ HOLDFAST_TEST_DOCKER_NETWORK: 'published' }, servers);
process.exitCode = shared === 0 && published === 0 ? 0 : 1;

async function connect() {
  // No helper container: the testbed's supervisor removes the others, and it need not be pulled then.
  process.env.TESTCONTAINERS_RYUK_DISABLED ??= 'true';
  try {
    return await getContainerRuntimeClient();
  } catch (error) {
    console.error(
      `No Docker engine answers, so nothing is proved. Start one, or point DOCKER_HOST to it. (${error.message})`,
    );
    process.exit(1);
  }
}

async function canPull(name) {
  const image = ImageName.fromString(name);
  if (await client.image.exists(image)) return true;
  try {
    await client.image.pull(image);
    return true;
  } catch (error) {
    console.error(
      `The engine cannot pull ${name} (${error.message.trim()}): an image is built from packages instead.`,
    );
    return false;
  }
}

/** An image with the servers of this machine's Debian release, built once for each engine. */
async function localImage() {
  const { ID: id, VERSION_CODENAME: codename } = osRelease();
  const name = `holdfast-test/servers:${codename}`;
  if (await client.image.exists(ImageName.fromString(name))) return name;
  if (process.getuid?.() !== 0 || codename === undefined)
    fail('Building an image needs root on Debian or Ubuntu.');
  if (spawnSync('debootstrap', ['--version']).error !== undefined)
    await need('apt-get', 'install', '-qq', '-y', 'debootstrap');
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-image-'));
  try {
    console.error(`Building ${name} with redis-server and etcd-server.`);
    const packages = 'redis-server,etcd-server';
    // Ubuntu keeps servers in a component of their own.
    const components = id === 'ubuntu' ? 'main,universe' : 'main';
    const options = ['--variant=minbase', `--components=${components}`, `--include=${packages}`];
    await need('debootstrap', ...options, codename, join(folder, 'root'));
    const archive = join(folder, 'image.tar');
    await need(
      'tar',
      '-C',
      join(folder, 'root'),
      '--exclude=./var/cache/apt/archives/*.deb',
      '-cf',
      archive,
      '.',
    );
    const [repo, tag] = name.split(':');
    await finished(await client.container.dockerode.importImage(archive, { repo, tag }));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return name;
}

function finished(stream) {
  return new Promise((resolve, reject) => {
    client.container.dockerode.modem.followProgress(stream, (error) => (error ? reject(error) : resolve()));
  });
}

function osRelease() {
  const lines = readFileSync('/etc/os-release', 'utf8').split('\n');
  return Object.fromEntries(
    lines.map((line) => line.split('=')).map(([key, value = '']) => [key, value.replaceAll('"', '')]),
  );
}

function runTests(more, filter) {
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const args = [vitest, 'run', '--config', 'packages/testbed/vitest.docker.config.ts', ...filter];
  return run(process.execPath, args, { env: { ...environment, ...more } });
}

/** Not synchronously: the connection to the engine may end meanwhile, which must be seen. */
async function need(program, ...args) {
  const code = await run(program, args);
  if (code !== 0) fail(`${program} failed with exit code ${code}.`);
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
