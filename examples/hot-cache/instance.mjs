import { connect } from '@holdfast/core';
import { serve, takes } from '../instances.mjs';
import { openCache } from './cache.mjs';

const cache = openCache(process.argv[2]);
const locks = await connect();
let rebuilt = 0;

/** What makes the entry hot: it is asked for all the time, and expensive to make. */
async function build(key) {
  rebuilt++;
  await takes(300);
  return `${key} as made by ${process.pid} at ${new Date().toISOString()}`;
}

/** Waits for the one who rebuilds, and reads what it made. Looks again under the lock: it may have been made meanwhile. */
async function fresh(key) {
  const cached = cache.get(key);
  if (cached?.fresh) return cached.value;
  return locks.lock(`cache:${key}`).run(async () => {
    const meanwhile = cache.get(key);
    if (meanwhile?.fresh) return meanwhile.value;
    const value = await build(key);
    cache.set(key, value);
    return value;
  });
}

/** Nobody waits: one rebuilds, the others serve the old value for a moment longer. */
async function staleWhileRebuilding(key) {
  const cached = cache.get(key);
  if (cached === undefined || cached.fresh) return fresh(key);
  const mine = await locks.lock(`cache:${key}`).tryRun(async () => {
    if (cache.get(key)?.fresh) return;
    cache.set(key, await build(key));
  });
  return mine.acquired ? cache.get(key).value : cached.value;
}

serve(
  async ({ key, stale }) => {
    rebuilt = 0;
    const value = await (stale ? staleWhileRebuilding(key) : fresh(key));
    return { value, rebuilt };
  },
  () => locks.close(),
);
