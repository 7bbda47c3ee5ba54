import { expect, it } from 'vitest';
import { Turnstile } from './turnstile.js';

it('lets no more in than it may, and the others in their order', async () => {
  const turnstile = new Turnstile(2);
  const log: string[] = [];
  const enter = (who: string): Promise<number> => turnstile.enter().then(() => log.push(who));
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
