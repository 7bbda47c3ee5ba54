import stringWidth from 'string-width';

/**
 * Text from elsewhere (names, owners, metadata) made safe for a terminal: everything that moves the cursor, sets a
 * title, hides or reorders other text is shown as an escape instead.
 */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => {
    const short = SHORT[character];
    return short ?? `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/** A URL that was typed at the wrong place, without its user and password, however they were written. */
export function withoutPassword(text: string): string {
  return text.replace(/:\/\/\S*@/g, '://…@');
}

/** As {@link printable}, in quotes where the text could be taken for something else: empty, with spaces or escapes. */
export function quoted(text: string): string {
  const safe = printable(text);
  return safe === '' || safe !== text || /[\s"'\\]/.test(text) ? `"${safe.replaceAll('"', '\\"')}"` : text;
}

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\u001b': '\\e' };

/** Controls, what only formats (direction overrides, zero width), line and paragraph separators, halves of pairs. */
export const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** Milliseconds for people: `850ms`, `12.5s`, `3m 20s`, `2h 5m`, `4d 1h`. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  if (ms < 60_000) return `${Math.floor(ms / 100) / 10}s`;
  const seconds = Math.floor(ms / 1000);
  const parts: readonly (readonly [number, string])[] = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ];
  const first = parts.findIndex(([amount]) => amount > 0);
  return parts
    .slice(first, first + 2)
    .filter(([amount]) => amount > 0)
    .map(([amount, unit]) => `${amount}${unit}`)
    .join(' ');
}

/** As {@link span}, with the parts of a millisecond where they matter. */
export function fineSpan(ms: number): string {
  return ms < 10 ? `${ms.toFixed(2)}ms` : span(ms);
}

/** As much of the text, from its beginning, as fits into so many columns of a terminal; `…` stands for the rest. */
export function fit(text: string, columns: number): string {
  if (stringWidth(text) <= columns) return text;
  let kept = '';
  let room = columns - 1;
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    room -= stringWidth(segment);
    if (room < 0) break;
    kept += segment;
  }
  return `${kept}…`;
}

/** Rows under headings, each column as wide as its widest cell. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [headings, ...rows];
  const widths = headings.map((_, column) => Math.max(...all.map((row) => stringWidth(row[column] ?? ''))));
  return all
    .map((row) =>
      row
        .map((cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - stringWidth(cell))))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
