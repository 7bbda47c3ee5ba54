import { claim, withInstances } from '../instances.mjs';
import { openShop } from './shop.mjs';

await withInstances(new URL('./instance.mjs', import.meta.url), 4, async (ask, folder) => {
  const shop = openShop(folder);
  for (const { order, locked } of [
    { order: '41', locked: false },
    { order: '42', locked: true },
  ]) {
    const receipts = await ask({ order, locked });
    const calls = shop.providerCalls(order);
    console.log(
      `\nOrder ${order}, submitted to four instances at once, ${locked ? 'with' : 'without'} a lock:`,
    );
    claim('one payment is stored', shop.payments(order) === 1);
    claim('everyone has the same receipt', new Set(receipts).size === 1);
    if (locked) claim(`the provider was called once (${calls})`, calls === 1);
    else console.log(`  the provider was called ${calls} times`);
  }
  shop.close();
});
