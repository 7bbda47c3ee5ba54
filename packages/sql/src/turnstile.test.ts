import { expect, it } from 'vitest';
import { Turnstile } from './turnstile.js';

function scene(most: number) {
  const turnstile = new Turnstile(most);
  const log: string[] = [];
  const enter = (who: string, urgent = false): Promise<number> =>
    turnstile.enter(urgent).then(() => log.push(who));
  return { turnstile, log, enter };
}

it('lets no more in than it may, and the others in their order', async () => {
  const { turnstile, log, enter } = scene(2);
  await Promise.all([enter('A'), enter('B')]);
  const [c, d] = [enter('C'), enter('D')];
  await Promise.resolve();
  expect(log).toEqual(['A', 'B']);
  turnstile.leave();
  await c;
  expect(log).toEqual(['A', 'B', 'C']);
  turnstile.leave();
  turnstile.leave();
  await d;
  await enter('E');
  expect(log).toEqual(['A', 'B', 'C', 'D', 'E']);
});

it('lets the urgent in before those who came earlier', async () => {
  const { turnstile, log, enter } = scene(1);
  await enter('A');
  const all = [enter('B'), enter('C'), enter('release', true), enter('renewal', true)];
  for (let i = 0; i < 4; i++) turnstile.leave();
  await Promise.all(all);
  expect(log).toEqual(['A', 'release', 'renewal', 'B', 'C']);
});
