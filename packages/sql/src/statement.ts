/** A statement with `:name` placeholders, as its driver takes it. */
export interface Statement<P extends object> {
  /** For drivers that prepare by name: short, and different for different texts. */
  readonly name: string;
  readonly text: string;
  values(parameters: P): unknown[];
}

/** How a driver writes its placeholders. */
export type PlaceholderStyle = 'numbered' | 'question';

let count = 0;

/** Compiles a text with `:name` placeholders; `::` is a cast. */
export function statement<P extends object>(style: PlaceholderStyle, source: string): Statement<P> {
  const order: string[] = [];
  const text = source.replace(/(::)|:([a-zA-Z]+)/g, (_match, cast: string | undefined, name: string) => {
    if (cast !== undefined) return cast;
    if (style === 'question') {
      order.push(name);
      return '?';
    }
    if (!order.includes(name)) order.push(name);
    return `$${order.indexOf(name) + 1}`;
  });
  return {
    name: `holdfast_${++count}`,
    text: text.replace(/\s+/g, ' ').trim(),
    values: (parameters) => order.map((name) => (parameters as Record<string, unknown>)[name]),
  };
}
