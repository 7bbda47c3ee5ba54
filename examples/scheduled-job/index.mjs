import { connect } from '@holdfast/core';
import { claim, withInstances } from '../instances.mjs';

const locks = await connect();
await withInstances(new URL('./instance.mjs', import.meta.url), 3, async (ask) => {
  const ran = await ask('it is three o’clock');
  console.log(
    `Three instances, clocks 150 ms apart: ${ran.map((yes) => (yes ? 'ran' : 'skipped')).join(', ')}`,
  );
  claim('one instance ran the job', ran.filter(Boolean).length === 1);

  // As the next night's job would, but waiting for the name to be free again.
  const next = await locks.lock('nightly-report').run(() => 'ran', { wait: '30s' });
  claim('the next run finds the name free', next === 'ran');
});
await locks.close();
