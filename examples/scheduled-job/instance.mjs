import { connect } from '@holdfast/core';
import { serve, takes } from '../instances.mjs';

const number = Number(process.argv[3]);
const locks = await connect();

/** A short job: on the fastest instance it is over before the slowest one's clock strikes. */
const report = () => takes(20);

/**
 * The name stays taken for `minHold` after it was acquired, also when the job is over: choose more than the clocks of
 * the hosts differ, and less than the interval of the schedule.
 */
async function atThree() {
  const { acquired } = await locks.lock('nightly-report').tryRun(report, { minHold: '3s' });
  return acquired;
}

serve(
  async () => {
    // The clocks of the hosts differ.
    await takes(number * 150);
    return atThree();
  },
  () => locks.close(),
);
