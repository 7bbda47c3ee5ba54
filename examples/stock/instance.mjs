import { connect } from '@holdfast/core';
import { serve, takes } from '../instances.mjs';
import { openShop } from './shop.mjs';

const shop = openShop(process.argv[2]);
const locks = await connect();

/** Wrong: between reading and writing, others read the same number. */
async function readThenWrite(item) {
  const n = shop.read(item);
  if (n === 0) return false;
  await takes(2);
  shop.write(item, n - 1);
  return true;
}

const WAYS = {
  'read, then write': readThenWrite,
  /** Right while the lock holds, and slower: everyone queues for every piece. */
  'the same under a lock': (item) => locks.lock(`stock:${item}`).run(() => readThenWrite(item)),
  /** Right, always. No lock is needed, so none is taken. */
  'one atomic update': (item) => shop.take(item),
};

serve(
  async (way) => {
    const sell = WAYS[way];
    let sold = 0;
    for (let customer = 0; customer < 8; customer++) if (await sell(way)) sold++;
    return sold;
  },
  () => locks.close(),
);
