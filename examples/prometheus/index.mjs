import { claim, withInstances } from '../instances.mjs';

const [instances, times] = [3, 5];

/** The sum of a metric over all instances, as Prometheus adds it up: `sum(name)`. */
const sum = (pages, name, label = '') =>
  pages
    .flatMap((page) => page.split('\n'))
    .filter((line) => line.startsWith(`${name}{`) && line.includes(label))
    .reduce((total, line) => total + Number(line.split(' ')[1]), 0);

await withInstances(new URL('./instance.mjs', import.meta.url), instances, async (ask) => {
  const urls = await ask({ times });
  const pages = await Promise.all(urls.map(async (url) => (await fetch(url)).text()));
  console.log(`What Prometheus reads from the first of ${instances} instances:\n`);
  console.log(pages[0].replace(/^.*_bucket.*\n/gm, ''));

  const total = instances * times;
  claim('every hold was counted', sum(pages, 'holdfast_acquisitions_total') === total);
  claim('instances that had to wait were counted', sum(pages, 'holdfast_contentions_total') > 0);
  const held = sum(pages, 'holdfast_hold_duration_sum');
  claim(`they held the lock for ${held.toFixed(2)} s, about 30 ms and more each`, held >= total * 0.029);
  const short = sum(pages, 'holdfast_hold_duration_bucket', 'le="0.025"');
  claim('none of the holds is in the buckets up to 25 ms', short === 0);
});
