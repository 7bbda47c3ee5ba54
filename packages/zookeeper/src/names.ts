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

/** Whether the node's name holds this owner, whole. */
export function isOwnedBy(owner: string, { node }: Contender): boolean {
  return NODE.exec(node)?.[1] === encodeOwner(owner);
}

/** The owner in the node's name. */
export function ownerOf({ node }: Contender): string {
  const encoded = NODE.exec(node)?.[1] ?? node;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

const NODE = /^(.*[^-])-(-?\d{9,10})$/;

/** Reads a claim's node; undefined for a stranger's. */
export function parseNode(node: string): Contender | undefined {
  const sequence = Number(NODE.exec(node)?.[2]);
  return (sequence | 0) === sequence ? { node, sequence } : undefined;
}

/** Many waiters may look at one listing. */
const ordered = new WeakMap<readonly string[], readonly Contender[]>();

/**
 * The order in which the server received them. The sequence is the parent's 32-bit counter of children, which goes on
 * at −2147483648 after 2147483647: so it is compared by the sign of the wrapped difference, not as a number.
 */
export function inOrder(children: readonly string[]): readonly Contender[] {
  const known = ordered.get(children);
  if (known !== undefined) return known;
  const contenders: Contender[] = [];
  for (const child of children) {
    const contender = parseNode(child);
    if (contender !== undefined) contenders.push(contender);
  }
  contenders.sort((a, b) => (a.sequence - b.sequence) | 0);
  ordered.set(children, contenders);
  return contenders;
}
