import { writeFileSync } from 'node:fs';
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
import { isAlive, Scratch, until } from './testing/program.js';

/** The backend's name in a config, and the server that it needs. */
const SERVERS: readonly (readonly [string, ServerName, () => Promise<ServerHandle>])[] = [
  ['redis', 'redis', startRedis],
  ['etcd', 'etcd', startEtcd],
  ['zookeeper', 'zookeeper', startZooKeeper],
  ['postgres', 'postgres', startPostgres],
  ['mariadb', 'mariadb', startMariaDb],
];

const WORKER = ['--', 'sh', '-c', 'sleep 600 & echo $$ $! > "$SCRATCH/pids"; wait'] as const;

describe.each(SERVERS.filter(([, server]) => !skipped(server)))('on %s', (backend, _server, start) => {
  let server: ServerHandle;
  let scratch: Scratch;

  beforeAll(async () => {
    server = await start();
  }, 120_000);

  afterAll(() => server.stop());

  beforeEach(() => {
    scratch = new Scratch();
    // The config line is all that differs; the URL comes from the environment, as a secret would.
    const config = { backend, [backend]: { url: `\${SERVER_URL}`, prefix: `cli-${process.pid}` } };
    writeFileSync(scratch.path('holdfast.config.json'), JSON.stringify(config));
  });

  afterEach(() => scratch.dispose());

  const environment = () => ({
    HOLDFAST_URL: undefined,
    HOLDFAST_CONFIG: scratch.path('holdfast.config.json'),
    SERVER_URL: server.url,
  });

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
