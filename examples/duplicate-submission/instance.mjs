import { connect } from '@holdfast/core';
import { serve } from '../instances.mjs';
import { openShop } from './shop.mjs';

const shop = openShop(process.argv[2]);
const locks = await connect();

/**
 * Right without a lock: the order's number is unique, and whoever comes second returns what the first one stored. The
 * provider is given that number too, so that it charges once however often it is called.
 */
async function submit(order) {
  const stored = shop.paymentOf(order);
  if (stored !== undefined) return stored;
  const receipt = await shop.charge(order);
  shop.store(order, receipt);
  return shop.paymentOf(order);
}

/** The lock adds nothing to what is right. It spares the provider's calls: the others wait, and find the payment. */
const submitLocked = (order) => locks.lock(`order:${order}`).run(() => submit(order));

serve(
  ({ order, locked }) => (locked ? submitLocked(order) : submit(order)),
  () => locks.close(),
);
