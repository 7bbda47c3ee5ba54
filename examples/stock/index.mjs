import { claim, withInstances } from '../instances.mjs';
import { openShop } from './shop.mjs';

const PIECES = 10;

await withInstances(new URL('./instance.mjs', import.meta.url), 3, async (ask, folder) => {
  const shop = openShop(folder);
  console.log(`${PIECES} pieces, 24 customers at three instances:`);
  for (const way of ['read, then write', 'the same under a lock', 'one atomic update']) {
    // The way's name is the item's.
    shop.fill(way, PIECES);
    const start = performance.now();
    const sold = (await ask(way)).reduce((sum, each) => sum + each, 0);
    const seen = `${way}: ${sold} sold, ${shop.read(way)} left, ${Math.round(performance.now() - start)} ms`;
    if (way === 'read, then write') console.log(`  ${seen}`);
    else claim(seen, sold === PIECES && shop.read(way) === 0);
  }
  shop.close();
});
