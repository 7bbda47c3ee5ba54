/**
 * Lock names and owners as node names, and the order of a queue.
 *
 * A lock's parent is its percent-encoded name; a claim's node is `<owner>-<sequence>`, where the server appends the
 * sequence. Both encodings are injective: two names never meet, and each can be read back.
 */

/** A claim's node among a lock's children. */
export interface Contender {
  /** The node's own name. */
  readonly node: string;
  readonly owner: string;
  readonly sequence: number;
}

/** Percent-encodes what ZooKeeper refuses in a node's name, or could misread. */
export function encodeName(name: string): string {
  if (name === '.') return '%2E';
  if (name === '..') return '%2E%2E';
  return encodeURIComponent(name);
}

/** The name behind a node's name; undefined when we would not have written it so: a stranger's node. */
export function decodeName(node: string): string | undefined {
  try {
    const name = decodeURIComponent(node);
    return encodeName(name) === node ? name : undefined;
  } catch {
    return undefined;
  }
}

/**
 * What a claim's node is called before the server appends its sequence. No encoded owner ends with a dash, so that the
 * dash before a negative sequence cannot be taken for the owner's.
 */
export function nodePrefix(owner: string): string {
  return `${encodeOwner(owner)}-`;
}

function encodeOwner(owner: string): string {
  return encodeURIComponent(owner).replace(/-$/, '%2D');
}

const NODE = /^(.*[^-])-(-?\d{9,10})$/;

/** Reads a claim's node; undefined for a stranger's. */
export function parseNode(node: string): Contender | undefined {
  const match = NODE.exec(node);
  if (match?.[1] === undefined) return undefined;
  const sequence = Number(match[2]);
  if ((sequence | 0) !== sequence) return undefined;
  try {
    const owner = decodeURIComponent(match[1]);
    return encodeOwner(owner) === match[1] ? { node, owner, sequence } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The order in which the server received them. The sequence is the parent's 32-bit counter of children, which goes on
 * at −2147483648 after 2147483647: so it is compared by the sign of the wrapped difference, not as a number.
 */
export function inOrder(children: readonly string[]): Contender[] {
  const contenders: Contender[] = [];
  for (const child of children) {
    const contender = parseNode(child);
    if (contender !== undefined) contenders.push(contender);
  }
  return contenders.sort((a, b) => (a.sequence - b.sequence) | 0);
}
