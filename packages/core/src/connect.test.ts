import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { connect } from './connect.js';

it('every connect of memory: in one process meets, prefix by prefix', async () => {
  const [one, two, other] = await Promise.all([
    connect('memory:'),
    connect({ backend: 'memory' }),
    connect('memory:?prefix=other'),
  ]);
  const hold = await one.lock('connect-meets').acquire();
  expect(await two.lock('connect-meets').tryAcquire()).toBeNull();
  const elsewhere = await other.lock('connect-meets').tryAcquire();
  expect(elsewhere?.isHeld()).toBe(true);
  await hold.release();
  const next = await two.lock('connect-meets').tryAcquire();
  expect(next?.fencingToken).toBeGreaterThan(hold.fencingToken);
  await Promise.all([one.close(), two.close(), other.close()]);
});

it('the config’s defaults and fence offset reach the locks', async () => {
  const offset = 10n ** 17n;
  const locks = await connect({
    backend: 'memory',
    defaults: { ttl: '7s', wait: 0 },
    fenceOffset: String(offset),
  });
  const hold = await locks.lock('connect-defaults').acquire();
  expect(hold.ttl).toBe(7000);
  expect(hold.fencingToken).toBeGreaterThan(offset);
  await expect(locks.lock('connect-defaults').acquire()).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
  await locks.close();
});

/** The files that importing `file` loads at once, and the packages that they name. */
function loadedBy(file: string, seen = new Map<string, string[]>()): Map<string, string[]> {
  if (seen.has(file)) return seen;
  const statements = readFileSync(file, 'utf8').matchAll(
    /^(?:import|export)\s(?!type\s)[^;]*?from '([^']+)'/gm,
  );
  const targets = [...statements].map(([, target = '']) => target);
  seen.set(
    file,
    targets.filter((target) => !target.startsWith('.')),
  );
  for (const target of targets) {
    if (target.startsWith('.')) loadedBy(join(dirname(file), target.replace(/\.js$/, '.ts')), seen);
  }
  return seen;
}

it('importing core loads no loader and nothing that only Node has', () => {
  const loaded = loadedBy(join(import.meta.dirname, 'index.ts'));
  expect([...loaded.keys()].map((file) => file.slice(import.meta.dirname.length + 1))).toContain(
    'connect.ts',
  );
  expect(new Set([...loaded.values()].flat())).toEqual(new Set(['#platform']));
});
