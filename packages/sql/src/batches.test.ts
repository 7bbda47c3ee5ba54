import { expect, it } from 'vitest';
import { Batches } from './batches.js';

function scene() {
  const sent: string[][] = [];
  const answer: (() => void)[] = [];
  const batches = new Batches<string, string>(
    (items) =>
      new Promise((resolve, reject) => {
        sent.push([...items]);
        answer.push(() =>
          items.includes('bad') ? reject(new Error('no')) : resolve(items.map((item) => item.toUpperCase())),
        );
      }),
  );
  return { sent, answer, batches };
}

it('sends the first at once, each by itself, and together what comes while they are under way', async () => {
  const { sent, answer, batches } = scene();
  const answers = ['a', 'b', 'c', 'd', 'e'].map((item) => batches.add(item));
  expect(sent).toEqual([['a'], ['b']]);
  answer[0]?.();
  expect(await answers[0]).toBe('A');
  expect(sent).toEqual([['a'], ['b'], ['c', 'd', 'e']]);
  answer[1]?.();
  answer[2]?.();
  expect(await Promise.all(answers)).toEqual(['A', 'B', 'C', 'D', 'E']);
  batches.add('f').catch(() => undefined);
  expect(sent.at(-1)).toEqual(['f']);
});

it('a batch that fails fails for all of it, and for nobody else', async () => {
  const { answer, batches } = scene();
  const [a, b, c, bad] = ['a', 'b', 'c', 'bad'].map((item) => batches.add(item));
  answer[0]?.();
  await a;
  answer[2]?.();
  await expect(c).rejects.toThrow('no');
  await expect(bad).rejects.toThrow('no');
  answer[1]?.();
  expect(await b).toBe('B');
});

it('a batch has its limit', async () => {
  const { sent, answer, batches } = scene();
  const all = Array.from({ length: 1202 }, (_, index) => batches.add(`${index}`));
  for (let i = 0; i < 5; i++) {
    answer[i]?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(all);
  expect(sent.map(({ length }) => length)).toEqual([1, 1, 500, 500, 200]);
});
