/** A Markdown table. Cells are Markdown; bars and line breaks in them are escaped. */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const numeric = head.map(
    (_, column) => rows.length > 0 && rows.every((row) => /^(–|[\d.,]+)$/.test(String(row[column] ?? '–'))),
  );
  const line = (cells: readonly (string | number)[]): string => `| ${cells.map(cell).join(' | ')} |`;
  return [line(head), line(numeric.map((right) => (right ? '--:' : '---'))), ...rows.map(line)].join('\n');
}

function cell(content: string | number): string {
  return String(content).replaceAll('|', '\\|').replace(/\s+/g, ' ');
}

/** A file in the repository, as a link to where it can be read. */
export function sourceLink(path: string): string {
  return `[${path.replace(/^packages\//, '')}](https://github.com/holdfast-locks/holdfast/blob/main/${path})`;
}
