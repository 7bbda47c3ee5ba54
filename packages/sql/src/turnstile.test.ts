import { expect, it } from 'vitest';
import { type Rank, Turnstile } from './turnstile.js';

function scene(most: number) {
  const turnstile = new Turnstile(most);
  const log: string[] = [];
  const enter = (who: string, rank: Rank = 3): Promise<number> =>
    turnstile.enter(rank).then(() => log.push(who));
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

it('lets those of a lower rank in before those who came earlier', async () => {
  const { turnstile, log, enter } = scene(1);
  await enter('A');
  const all = [enter('D'), enter('E'), enter('C', 2), enter('B1', 1), enter('B0', 0), enter('B2', 1)];
  for (let i = 0; i < 6; i++) turnstile.leave();
  await Promise.all(all);
  expect(log).toEqual(['A', 'B0', 'B1', 'B2', 'C', 'D', 'E']);
});
