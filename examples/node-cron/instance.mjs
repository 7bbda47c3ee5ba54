import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from '@holdfast/core';
import cron from 'node-cron';
import { serve } from '../instances.mjs';

const log = join(process.argv[2], 'runs.log');
const locks = await connect();

/** The job: it writes down for which tick it ran. */
const report = (tick) => appendFileSync(log, `${tick}\n`);

/**
 * One lock for each tick, by the time for which it was scheduled. `minHold` is longer than an instance can be late, so
 * that a late one finds the tick taken, also when the job is over.
 */
async function onTick({ date }) {
  const tick = date.toISOString();
  await locks.lock(`report:${tick}`).tryRun(() => report(tick), { minHold: '20s' });
  return tick;
}

/** Lives through some ticks, and says which. */
function live(count) {
  return new Promise((resolve, reject) => {
    const ticks = [];
    const task = cron.schedule('* * * * * *', async (context) => {
      try {
        ticks.push(await onTick(context));
        if (ticks.length < count) return;
        await task.destroy();
        resolve(ticks);
      } catch (error) {
        reject(error);
      }
    });
  });
}

serve(live, () => locks.close());
