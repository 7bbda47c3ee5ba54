import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readlinkSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const TESTBED = fileURLToPath(new URL('../../dist/index.js', import.meta.url));

/** A process that starts servers and a worker, says which, and then does nothing more. */
const PROGRAM = `
  import { startRedis, startPostgres, startWorker, fakeClock } from '${TESTBED}';
  const [redis, paused, postgres] = await Promise.all([
    startRedis({ own: true }), startRedis({ own: true, tls: true }), startPostgres({ clock: fakeClock() }),
  ]);
  const worker = await startWorker(process.argv[1]);
  await paused.node.pause();
  await worker.pause();
  console.log(JSON.stringify({ pids: [redis.node.pid, paused.node.pid, postgres.node.pid], worker: worker.pid }));
  setInterval(() => undefined, 1000);
`;
const WORKER = fileURLToPath(new URL('../../fixtures/worker.mjs', import.meta.url));

// Generous: three servers and a worker start on a machine that may be busy.
const TIMEOUT = 120_000;

test.skipIf(process.platform !== 'linux')(
  'kill −9 of the test process takes servers, paused ones, workers and folders with it',
  async () => {
    const parent = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM, WORKER], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, HOLDFAST_TEST_PROVIDER: 'local' },
    });
    const started = JSON.parse(await firstLine(parent)) as { pids: number[]; worker: number };
    const all = [...started.pids, started.worker];
    const homes = started.pids.map((pid) => readlinkSync(`/proc/${pid}/cwd`));
    expect(all.filter(isAlive)).toEqual(all);
    expect(homes.filter((home) => existsSync(home))).toHaveLength(3);

    parent.kill('SIGKILL');
    await expect
      .poll(() => [all.filter(isAlive), homes.filter((home) => existsSync(home))], { timeout: 60_000 })
      .toEqual([[], []]);
  },
  TIMEOUT,
);

test(
  'a process that has stopped its servers can end by itself',
  async () => {
    const program = `
    import { startRedis } from '${TESTBED}';
    const redis = await startRedis({ own: true });
    await redis.stop();
    console.log('stopped');
  `;
    const parent = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exited = new Promise((resolve) => parent.once('exit', resolve));
    expect(await firstLine(parent)).toBe('stopped');
    expect(await exited).toBe(0);
  },
  TIMEOUT,
);

async function firstLine(child: ChildProcess): Promise<string> {
  let text = '';
  for await (const chunk of child.stdout ?? []) {
    text += String(chunk);
    if (text.includes('\n')) break;
  }
  return text.slice(0, text.indexOf('\n'));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
