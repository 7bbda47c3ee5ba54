import { expect, it } from 'vitest';
import { newOwner } from './owner.js';
import { OwnerMap } from './owner-map.js';

it('keeps one value by owner, whatever owners look like', () => {
  const owners = ['', 'A', 'B', 'AB', 'ünïcødé', '\u{1F512}', ...Array.from({ length: 5000 }, newOwner)];
  const map = new OwnerMap<number>();
  for (const [index, owner] of owners.entries()) map.set(owner, index);
  expect(map.size).toBe(owners.length);
  expect(owners.map((owner) => map.get(owner))).toEqual(owners.map((_, index) => index));
  expect(map.values().sort((a, b) => a - b)).toEqual(owners.map((_, index) => index));

  map.set('A', -1);
  expect([map.get('A'), map.size]).toEqual([-1, owners.length]);
  expect([map.get('a'), map.delete('a')]).toEqual([undefined, false]);

  const odd = owners.filter((_, index) => index % 2 === 1);
  expect(odd.every((owner) => map.delete(owner))).toBe(true);
  expect(odd.some((owner) => map.delete(owner))).toBe(false);
  expect(map.size).toBe(owners.length - odd.length);
  expect(owners.map((owner) => map.get(owner) !== undefined)).toEqual(owners.map((_, i) => i % 2 === 0));

  map.clear();
  expect([map.size, map.values(), map.get('B')]).toEqual([0, [], undefined]);
});

it('may be changed while its values are looked at', () => {
  const map = new OwnerMap<string>();
  for (const owner of ['a', 'b', 'c']) map.set(owner, owner);
  for (const owner of map.values()) map.delete(owner);
  expect(map.size).toBe(0);
});
