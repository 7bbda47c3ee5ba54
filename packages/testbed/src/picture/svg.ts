/** Attributes of an element; numbers are rounded to a hundredth. */
export type Attributes = Readonly<Record<string, string | number | undefined>>;

/** One SVG element as text. `content` is markup already; text goes through {@link text}. */
export function element(name: string, attributes: Attributes, content = ''): string {
  const list = Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(
      ([key, value]) => ` ${key}="${typeof value === 'number' ? round(value) : escapeText(String(value))}"`,
    )
    .join('');
  return content === '' ? `<${name}${list}/>` : `<${name}${list}>${content}</${name}>`;
}

/** A line of text. `title` is shown by viewers when pointed at. */
export function text(x: number, y: number, content: string, attributes: Attributes = {}): string {
  return element('text', { x, y, ...attributes }, escapeText(content));
}

/** What a viewer shows when pointed at the enclosing element. */
export function title(content: string): string {
  return element('title', {}, escapeText(content));
}

function escapeText(content: string): string {
  const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  // Characters that XML cannot hold at all become a mark.
  return content
    .replace(/[&<>"]/g, (character) => escapes[character] ?? character)
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd');
}

function round(value: number): string {
  return String(Math.round(value * 100) / 100);
}
