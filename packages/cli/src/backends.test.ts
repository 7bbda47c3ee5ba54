import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { connect } from '@holdfast/core';
import {
  type ServerHandle,
  type ServerName,
  skipped,
  startEtcd,
  startMariaDb,
  startPostgres,
  startRedis,
  startZooKeeper,
} from '@holdfast/testbed';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { isAlive, MAIN, Scratch, until } from './testing/program.js';

/** The backend's name in a config, and the server that it needs. */
const SERVERS: readonly (readonly [string, ServerName, () => Promise<ServerHandle>])[] = [
  ['redis', 'redis', startRedis],
  ['etcd', 'etcd', startEtcd],
  ['zookeeper', 'zookeeper', startZooKeeper],
  ['postgres', 'postgres', startPostgres],
  ['mariadb', 'mariadb', startMariaDb],
];

const WORKER = ['--', 'sh', '-c', 'sleep 600 & echo $$ $! > "$SCRATCH/pids"; wait'] as const;

/** One config for all: the first line is the only one that differs, and the URLs come from the environment. */
const SECTIONS = ['sqlite', ...SERVERS.map(([backend]) => backend)]
  .map((backend) => `${backend}: { url: "\${${backend.toUpperCase()}_URL}", prefix: cli-${process.pid} }\n`)
  .join('');

/** What somebody may keep in a file and run anywhere. */
const SCRIPT = `
holdfast run --wait 60s job -- sh -c 'echo "one at a time: $HOLDFAST_LOCK"; exit 7'
echo "exit code $?"
holdfast run --ttl 5s --kill-after 1s job -- sh -c '
  holdfast run --try job -- echo never; echo "busy: $?"
  holdfast show job --json | field held
  holdfast list --json | field name
  holdfast run --wait 30s other -- echo "another name is free"
  echo "$HOLDFAST_FENCING_TOKEN" > "$SCRATCH/written" && mv "$SCRATCH/written" "$SCRATCH/token"
  sleep 600' &
until [ -e "$SCRATCH/token" ]; do sleep 0.1; done
holdfast release --force --token "$(cat "$SCRATCH/token")" job
wait $!
echo "broken: $?"
holdfast run --wait 30s job -- echo "free again"
holdfast list --prefix job
`;

const TRANSCRIPT = [
  'one at a time: job',
  'exit code 7',
  'busy: 75',
  'held: true',
  'name: job',
  'another name is free',
  'released job; its holder learns of it at its next renewal',
  'broken: 76',
  'free again',
];

/** Runs the script with `holdfast` in its path, and with `field NAME`, which prints a field of an object. */
async function runScript(scratch: Scratch, environment: NodeJS.ProcessEnv): Promise<readonly string[]> {
  const path = scratch.path('bin');
  mkdirSync(path);
  const tool = (name: string, command: string): void => {
    writeFileSync(join(path, name), `#!/bin/sh\nexec ${command}\n`, { mode: 0o755 });
  };
  tool('holdfast', `"${process.execPath}" "${MAIN}" "$@"`);
  const print = 'const [, name] = process.argv; console.log(name + ": " + JSON.parse(readFileSync(0))[name])';
  tool('field', `"${process.execPath}" -e 'const { readFileSync } = require("fs"); ${print}' "$1"`);
  writeFileSync(scratch.path('job.sh'), SCRIPT);
  const { stdout } = await promisify(execFile)('sh', [scratch.path('job.sh')], {
    env: { ...process.env, ...environment, SCRATCH: scratch.folder, PATH: `${path}:${process.env.PATH}` },
  });
  return stdout.trim().split('\n');
}

function useConfig(scratch: Scratch, backend: string): NodeJS.ProcessEnv {
  writeFileSync(scratch.path('holdfast.config.yaml'), `backend: ${backend}\n${SECTIONS}`);
  return { HOLDFAST_URL: undefined, HOLDFAST_CONFIG: scratch.path('holdfast.config.yaml') };
}

it('the script does on sqlite what it is written to do', async () => {
  const scratch = new Scratch();
  const environment = { ...useConfig(scratch, 'sqlite'), SQLITE_URL: scratch.url };
  expect(await runScript(scratch, environment)).toEqual(TRANSCRIPT);
  await scratch.dispose();
}, 120_000);

describe.each(SERVERS.filter(([, server]) => !skipped(server)))('on %s', (backend, _server, start) => {
  let server: ServerHandle;
  let scratch: Scratch;
  let config: NodeJS.ProcessEnv;

  beforeAll(async () => {
    server = await start();
  }, 120_000);

  afterAll(() => server.stop());

  beforeEach(() => {
    scratch = new Scratch();
    config = useConfig(scratch, backend);
  });

  afterEach(() => scratch.dispose());

  const environment = () => ({ ...config, [`${backend.toUpperCase()}_URL`]: server.url });

  it('the same script does the same: the config’s first line is all that changed', async () => {
    expect(await runScript(scratch, environment())).toEqual(TRANSCRIPT);
  }, 180_000);

  it('runs one at a time, passes the exit code on, tells who holds, and recovers from kill −9', async () => {
    const run = (...args: string[]) => scratch.holdfast(['run', ...args], environment());
    const script = 'echo in >> "$SCRATCH/log"; sleep 0.1; echo out >> "$SCRATCH/log"; exit 7';
    const programs = Array.from({ length: 4 }, () => run('--wait', '60s', 'job', '--', 'sh', '-c', script));
    const ends = await Promise.all(programs.map((program) => program.exited));
    expect(ends).toMatchObject(Array(4).fill({ code: 7, stderr: '' }));
    expect(scratch.lines('log')).toEqual(Array(4).fill(['in', 'out']).flat());

    const holder = run('--ttl', '5s', 'job', ...WORKER);
    await until('the worker works', () => scratch.lines('pids').length === 1);
    const busy = await run('--try', 'job', '--', 'true').exited;
    expect(busy).toMatchObject({ code: 75 });
    const listed = await scratch.holdfast(['list', '--json'], environment()).exited;
    expect(JSON.parse(listed.stdout)).toMatchObject({
      name: 'job',
      owner: expect.stringContaining(`:${holder.pid}:`),
    });

    holder.kill('SIGKILL');
    const next = await run('--wait', '60s', 'job', '--', 'sh', '-c', 'cat "$SCRATCH/pids"').exited;
    expect(next.code).toBe(0);
    expect(next.stdout.trim().split(' ').map(Number).filter(isAlive)).toEqual([]);
  }, 120_000);

  it('doctor finds nothing that stops it', async () => {
    const end = await scratch.holdfast(['doctor', '--json'], environment()).exited;
    expect(JSON.parse(end.stdout)).toMatchObject({ findings: expect.any(Array) });
  }, 60_000);
});

it.skipIf(skipped('zookeeper'))(
  'kill −9 where the session ends long before the ttl: the group has gone before the name is free',
  async () => {
    const scratch = new Scratch();
    await using server = await startZooKeeper();
    const url = `${server.url}?sessionTimeout=6s&prefix=cli-${process.pid}`;
    const stubborn = 'trap "" TERM; echo $$ > "$SCRATCH/pids"; while :; do sleep 0.2; done';
    const flags = ['run', '--url', url, '--ttl', '60s', '--kill-after', '60s'];
    const holder = scratch.holdfast([...flags, 'job', '--', 'sh', '-c', stubborn]);
    await until('the worker works', () => scratch.lines('pids').length === 1);
    holder.kill('SIGKILL');
    await using locks = await connect(url);
    const next = await locks.lock('job').acquire({ wait: '40s' });
    expect(scratch.lines('pids').map(Number).filter(isAlive)).toEqual([]);
    await next.release();
    await scratch.dispose();
  },
  90_000,
);

describe.skipIf(skipped('redis'))('when the server goes away', () => {
  it('cli-grandchild: the whole group is ended within the ttl, exit 76', async () => {
    const scratch = new Scratch();
    await using server = await startRedis({ own: true });
    const ttl = 3000;
    const program = scratch.holdfast(['run', '--url', server.url, '--ttl', `${ttl}ms`, 'job', ...WORKER]);
    await until('the worker works', () => scratch.lines('pids').length === 1);
    const processes = (scratch.lines('pids')[0] ?? '').split(' ').map(Number);
    await server.node.stop();
    const stopped = performance.now();
    await until('the group has gone', () => !processes.some(isAlive));
    expect(performance.now() - stopped).toBeLessThan(ttl + 2000);
    expect(await program.exited).toMatchObject({ code: 76, stderr: expect.stringContaining('was lost') });
    await scratch.dispose();
  }, 60_000);

  it('a command that cannot have its lock exits 69 in bounded time, and shows no password', async () => {
    const scratch = new Scratch();
    const url = 'redis://:hunter2@127.0.0.1:1';
    const end = await scratch.holdfast(['run', '--url', url, 'job', '--', 'true']).exited;
    expect(end.code).toBe(69);
    expect(end.stderr).not.toContain('hunter2');
    await scratch.dispose();
  }, 60_000);

  it('the arguments, with their password, are not in the list of processes', async () => {
    const scratch = new Scratch();
    await using server = await startRedis({ password: 'hunter2' });
    const program = scratch.holdfast(['run', '--url', server.url, 'job', ...WORKER]);
    await until('the worker works', () => scratch.lines('pids').length === 1);
    expect(program.commandLine()).not.toContain('hunter2');
    expect(program.commandLine()).toContain('holdfast');
    await using locks = await connect(server.url);
    expect((await locks.inspect('job')).held).toBe(true);
    program.kill('SIGTERM');
    await program.exited;
    await scratch.dispose();
  }, 60_000);
});
