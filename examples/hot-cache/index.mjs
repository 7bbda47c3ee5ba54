import { claim, withInstances } from '../instances.mjs';
import { openCache } from './cache.mjs';

const rebuilds = (answers) => answers.reduce((sum, { rebuilt }) => sum + rebuilt, 0);

await withInstances(new URL('./instance.mjs', import.meta.url), 4, async (ask, folder) => {
  const cache = openCache(folder);
  const key = 'front-page';

  console.log('The entry is missing, and four instances ask for it at once:');
  const first = await ask({ key, stale: false });
  claim(`it was built once (${rebuilds(first)})`, rebuilds(first) === 1);
  claim('everyone got that value', new Set(first.map(({ value }) => value)).size === 1);

  console.log('\nIt is stale, and nobody wants to wait:');
  cache.expire(key);
  const second = await ask({ key, stale: true });
  const allowed = new Set([first[0].value, cache.get(key).value]);
  claim(`it was rebuilt once (${rebuilds(second)})`, rebuilds(second) === 1);
  claim(
    'everyone got the old value or the new one',
    second.every(({ value }) => allowed.has(value)),
  );
  cache.close();
});
