import { expect, it } from 'vitest';
import { Places } from './places.js';

it('a name is crowded for as long as an owner has a place, however often it was told', () => {
  const places = new Places();
  places.add('A', 'job');
  places.add('A', 'job');
  places.add('B', 'job');
  expect([places.has('A'), places.crowded('job'), places.crowded('other')]).toEqual([true, true, false]);
  places.delete('A');
  places.delete('A');
  expect([places.has('A'), places.crowded('job')]).toEqual([false, true]);
  places.delete('B');
  expect(places.crowded('job')).toBe(false);
});
