// Finds the servers that the tests need on this machine, and installs what is missing where that is possible: on
// Debian and Ubuntu as root. Uses nothing but Node, so that it runs before anything is installed:
//
//   node scripts/install-servers.mjs [redis] [etcd] [zookeeper] [postgres] [pgbouncer] [mariadb] [openssl] [faketime]
//   node scripts/install-servers.mjs --check [names]     only says what is missing
//   node scripts/install-servers.mjs chromium            the browser in which the site is tested
//
// Left alone are servers that HOLDFAST_TEST_SKIP names, those that a HOLDFAST_TEST_..._URL names, and, where nothing
// can be installed but a Docker engine answers, all: then the tests run them in containers.

import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** For each server the files that show it is there, and the packages that bring them. */
const SERVERS = {
  redis: { programs: ['redis-server'], packages: ['redis-server'] },
  etcd: { programs: ['etcd'], packages: ['etcd-server'] },
  // The package named zookeeper would bring a desktop's Java.
  zookeeper: { programs: ['java', 'zookeeper.jar'], packages: ['libzookeeper-java', 'default-jre-headless'] },
  postgres: { programs: ['postgres', 'initdb'], packages: ['postgresql'] },
  pgbouncer: { programs: ['pgbouncer'], packages: ['pgbouncer'] },
  mariadb: { programs: ['mariadbd', 'mariadb-install-db'], packages: ['mariadb-server'] },
  openssl: { programs: ['openssl'], packages: ['openssl'] },
  faketime: { programs: ['libfaketime.so.1'], packages: ['libfaketime'] },
};

/** What only some commands need, and ask for by name. */
const ON_DEMAND = {
  chromium: { programs: ['chromium'], packages: ['chromium', 'fonts-dejavu-core'] },
};

export const SERVER_NAMES = Object.keys(SERVERS);

/** Where a program, or a file that a server needs, is; undefined when it is nowhere. */
export function lookUp(name) {
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter),
    // Distributions keep servers where a user's PATH does not look.
    '/usr/sbin',
    '/usr/local/sbin',
    ...list('/usr/lib/postgresql').map((version) => `/usr/lib/postgresql/${version}/bin`),
    '/usr/share/java',
    ...list('/usr/lib').map((machine) => `/usr/lib/${machine}/faketime`),
    '/usr/lib/faketime',
  ];
  return folders.map((folder) => join(folder, name)).find(isReadable);
}

/** Those of the names whose programs this machine does not have. */
export function missing(names) {
  return names.filter((name) => entry(name).programs.some((program) => lookUp(program) === undefined));
}

/** Whether this machine lets us install: Debian or one of its children, and we are root. */
export function canInstall() {
  return process.getuid?.() === 0 && existsSync('/etc/debian_version') && lookUp('apt-get') !== undefined;
}

/**
 * Installs what is missing of the names. No service is started: the tests run servers of their own.
 *
 * @throws Error naming what cannot be had and how it could be
 */
export function installServers(names) {
  const absent = missing(names);
  if (absent.length === 0) return;
  if (!canInstall()) throw new Error(explain(absent));
  const packages = [...new Set(absent.flatMap((name) => entry(name).packages))];
  console.error(`Installing ${packages.join(', ')} for the tests of ${absent.join(', ')}.`);
  withoutServiceStarts(() => {
    aptGet('update', '-qq');
    aptGet('install', '-qq', '-y', '--no-install-recommends', ...packages);
  });
  const still = missing(absent);
  if (still.length > 0) throw new Error(explain(still));
}

function explain(names) {
  return (
    `The tests need ${names.join(', ')}, and this machine has no such server. Either start a Docker engine, or ` +
    `install the server (on Debian and Ubuntu as root: apt-get install ${names
      .flatMap((name) => entry(name).packages)
      .join(' ')}). To leave its tests out say HOLDFAST_TEST_SKIP=${names.join(',')}.`
  );
}

function entry(name) {
  const found = SERVERS[name] ?? ON_DEMAND[name];
  if (found === undefined) {
    const known = [...SERVER_NAMES, ...Object.keys(ON_DEMAND)];
    throw new Error(`There is no server ${name}; known are ${known.join(', ')}.`);
  }
  return found;
}

function aptGet(...args) {
  // Another run may be installing as well: wait for its lock. What apt says goes to stderr, as progress.
  const { status, error } = spawnSync('apt-get', ['-o', 'DPkg::Lock::Timeout=300', ...args], {
    stdio: ['ignore', 2, 2],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  if (status !== 0) throw new Error(`apt-get ${args.join(' ')} failed.`, { cause: error });
}

const POLICY = '/usr/sbin/policy-rc.d';
const POLICY_TEXT =
  '#!/bin/sh\n# Written by scripts/install-servers.mjs, which removes it again.\nexit 101\n';

/** Debian's packages start their services unless this file says no. */
function withoutServiceStarts(install) {
  const ours = !existsSync(POLICY) || readFileSync(POLICY, 'utf8') === POLICY_TEXT;
  if (ours) writeFileSync(POLICY, POLICY_TEXT, { mode: 0o755 });
  try {
    install();
  } finally {
    if (ours) rmSync(POLICY, { force: true });
  }
}

function list(folder) {
  try {
    // Newest version first.
    return readdirSync(folder).sort((a, b) => Number(b) - Number(a));
  } catch {
    return [];
  }
}

function isReadable(path) {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

/** Those that this run of the tests needs on this machine. */
function needed() {
  const skipped = (process.env.HOLDFAST_TEST_SKIP ?? '').split(/[\s,]+/);
  return SERVER_NAMES.filter((name) => {
    return !skipped.includes(name) && !process.env[`HOLDFAST_TEST_${name.toUpperCase()}_URL`];
  });
}

/** Whether a Docker engine answers on the usual socket, or at the address that DOCKER_HOST gives. */
function engineAnswers() {
  const [, protocol, address] = /^(\w+):\/\/(.*)$/.exec(process.env.DOCKER_HOST ?? '') ?? [];
  const [host, port = 2375] = address?.split(':') ?? [];
  const sockets = ['/var/run/docker.sock', join(homedir(), '.docker/run/docker.sock')];
  const where =
    protocol === 'tcp' ? { host, port } : { socketPath: address ?? sockets.find((path) => existsSync(path)) };
  if (protocol !== 'tcp' && where.socketPath === undefined) return Promise.resolve(false);
  return new Promise((resolve) => {
    get({ ...where, path: '/_ping', timeout: 2000 }, (answer) => resolve(answer.resume().statusCode === 200))
      .once('timeout', () => resolve(false))
      .once('error', () => resolve(false));
  });
}

async function main(args) {
  const check = args[0] === '--check';
  const asked = check ? args.slice(1) : args;
  const names = asked.length === 0 ? needed() : asked;
  if (check) {
    const absent = missing(names);
    console.log(absent.length === 0 ? 'Nothing is missing.' : `Missing: ${absent.join(', ')}`);
    return absent.length === 0 ? 0 : 1;
  }
  if (missing(names).length > 0 && !canInstall() && (await engineAnswers())) {
    console.error('A Docker engine answers: it will run the servers that this machine does not have.');
    return 0;
  }
  installServers(names);
  return 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    process.exitCode = await main(process.argv.slice(2));
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
