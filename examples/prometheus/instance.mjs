import { connect } from '@holdfast/core';
import { serve, takes } from '../instances.mjs';
import { serveMetrics } from './metrics.mjs';

const metrics = await serveMetrics(0);
const locks = await connect();

serve(
  async ({ times }) => {
    for (let time = 0; time < times; time++) {
      await locks.lock('rebuild-index').run(() => takes(30));
    }
    return metrics.url;
  },
  async () => {
    await locks.close();
    await metrics.close();
  },
);
