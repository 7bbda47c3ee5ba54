import type { Span } from '../history/story.js';

/** Puts spans into as few rows as it takes for none to cover another in its row, in the order of their starts. */
export function lanes<T>(items: readonly T[], spanOf: (item: T) => Span): T[][] {
  const rows: { items: T[]; until: number }[] = [];
  for (const item of [...items].sort((a, b) => spanOf(a).from - spanOf(b).from)) {
    const { from, until } = spanOf(item);
    const row = rows.find((candidate) => candidate.until <= from);
    if (row === undefined) rows.push({ items: [item], until });
    else {
      row.items.push(item);
      row.until = until;
    }
  }
  return rows.map((row) => row.items);
}
