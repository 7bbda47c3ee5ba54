import { expect, it } from 'vitest';
import { Entrance } from './entrance.js';

it('lets no more in than there is room for, in the order in which they came', async () => {
  const entrance = new Entrance(2);
  const log: string[] = [];
  const leave = new Map<string, (error?: Error) => void>();
  const enter = (who: string): Promise<string> =>
    entrance.pass(async () => {
      log.push(who);
      await new Promise<void>((resolve, reject) => {
        leave.set(who, (error) => (error === undefined ? resolve() : reject(error)));
      });
      return who;
    });
  const [a, b, c, d] = [enter('a'), enter('b'), enter('c'), enter('d')];
  await Promise.resolve();
  expect(log).toEqual(['a', 'b']);
  leave.get('b')?.();
  expect(await b).toBe('b');
  await Promise.resolve();
  expect(log).toEqual(['a', 'b', 'c']);
  // Work that fails gives its place on as well.
  leave.get('a')?.(new Error('failed'));
  await expect(a).rejects.toThrow('failed');
  await Promise.resolve();
  expect(log).toEqual(['a', 'b', 'c', 'd']);
  leave.get('c')?.();
  leave.get('d')?.();
  expect(await Promise.all([c, d])).toEqual(['c', 'd']);
  const again = enter('e');
  expect(log.at(-1)).toBe('e');
  leave.get('e')?.();
  await again;
});
