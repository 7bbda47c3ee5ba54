import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { addressesIn } from '../servers/environment.js';
import { exchange } from '../servers/probe.js';

const MAIN = fileURLToPath(new URL('../../dist/services/main.js', import.meta.url));
let temporary: string;

// A temporary folder of its own: nobody else's servers are in it.
beforeEach(() => {
  temporary = mkdtempSync(join(tmpdir(), 'services-'));
});

afterEach(async () => {
  await services('down');
  rmSync(temporary, { recursive: true, force: true });
});

// Generous: three commands and seven servers start on a machine that may be busy.
const TIMEOUT = 120_000;

test(
  'up starts what is named and prints its URL, down leaves no process, no port and no file',
  async () => {
    const up = await services('up', 'redis', 'etcd');
    expect(up.stdout).toMatch(
      /^export HOLDFAST_TEST_REDIS_URL='redis:\S+'\nexport HOLDFAST_TEST_ETCD_URL='etcd:\S+'\n$/,
    );
    const [redis = 0] = portsIn(up.stdout);
    await exchange(redis, { send: 'PING\r\n', accept: (text) => text.includes('PONG') });
    expect(await etcdIn(temporary)).toHaveLength(1);

    const again = await services('up', 'redis', 'redis-quorum');
    expect(again.stdout).toContain(up.stdout);
    expect((await services('status')).stdout.trim().split('\n')).toHaveLength(3);

    const down = await services('down');
    expect(down.stderr).toContain('Stopped');
    expect(readdirSync(temporary)).toEqual([]);
    expect(await etcdIn(temporary)).toEqual([]);
    for (const port of portsIn(again.stdout)) {
      await expect(exchange(port, { accept: () => true })).rejects.toThrow('ECONNREFUSED');
    }
    expect((await services('status')).stderr).toContain('No server is running');
  },
  TIMEOUT,
);

test('a name that is none fails, saying which there are', async () => {
  await expect(services('up', 'oracle')).rejects.toThrow(/no server oracle; known are redis/);
});

function services(...args: string[]): Promise<{ stdout: string; stderr: string }> {
  return promisify(execFile)(process.execPath, [MAIN, ...args], {
    env: { ...process.env, TMPDIR: temporary, HOLDFAST_TEST_PROVIDER: 'local' },
  });
}

function portsIn(exports: string): number[] {
  return [...exports.matchAll(/='(.*)'/g)].flatMap(([, url = '']) =>
    addressesIn(url, 0).map(({ port }) => port),
  );
}

/** The etcd processes whose data are in there; Redis does not show where its data are. */
async function etcdIn(folder: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-ww', '-o', 'args=']);
  return stdout.split('\n').filter((line) => /^\S*etcd /.test(line) && line.includes(folder));
}
