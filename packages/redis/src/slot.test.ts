import { expect, it } from 'vitest';
import { slotOf } from './slot.js';

it.each([
  ['', 0],
  ['123456789', 0x31c3],
  ['{test', 10879],
  ['abc{}xyz', 7765],
  ['{user1000}.following', slotOf('user1000')],
  ['foo{{bar}}zap', slotOf('{bar')],
  ['foo{bar}{zap}', slotOf('bar')],
  ['schlüssel-🔑', slotOf('{schlüssel-🔑}')],
])('the slot of %j is the one that the cluster specification gives (brace-unclosed)', (key, slot) => {
  expect(slotOf(key)).toBe(slot);
});
