/** A connection through a proxy, as matchers see it. */
export interface ProxyConnection {
  /** Counts from 1. */
  readonly id: number;
  /** The first bytes that came from the client; empty before they did. */
  readonly opening: Buffer;
}

/** Chooses a piece of traffic: bytes that it contains, or a function of it. TLS hides what it would look for. */
export type Matcher = string | Buffer | RegExp | ((chunk: Buffer, connection: ProxyConnection) => boolean);

export function matches(matcher: Matcher, chunk: Buffer, connection: ProxyConnection): boolean {
  if (typeof matcher === 'function') return matcher(chunk, connection);
  if (matcher instanceof RegExp) return chunk.toString('latin1').search(matcher) !== -1;
  return chunk.includes(matcher);
}

/**
 * Matches a chunk that holds this Redis command (in any case: clients differ), and if given with these bytes in it.
 */
export function redisCommand(command: string, containing?: string): (chunk: Buffer) => boolean {
  const sent = new RegExp(`\\*\\d+\\r\\n\\$\\d+\\r\\n${command}\\r\\n`, 'i');
  return (chunk) =>
    sent.test(chunk.toString('latin1')) && (containing === undefined || chunk.includes(containing));
}

/**
 * Matches the chunk in which an HTTP/2 server begins to answer: one with a HEADERS frame. Servers send SETTINGS,
 * WINDOW_UPDATE and PING before it. Requests are best known by the key that they carry: paths are compressed.
 */
export function http2Answer(chunk: Buffer): boolean {
  const HEADERS = 1;
  for (let at = 0; at + 9 <= chunk.length; at += 9 + chunk.readUIntBE(at, 3)) {
    if (chunk[at + 3] === HEADERS) return true;
  }
  return false;
}

/** ZooKeeper's operations by their numbers on the wire. */
export const ZOOKEEPER_OPERATIONS = {
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getChildren: 8,
  getChildren2: 12,
  multi: 14,
} as const;

/** Matches a chunk that holds a ZooKeeper request of this operation, and if given with these bytes in it. */
export function zooKeeperRequest(
  operation: keyof typeof ZOOKEEPER_OPERATIONS,
  containing?: string,
): (chunk: Buffer) => boolean {
  return (chunk) => {
    // A frame: its length, then the transaction id, then the operation.
    for (let at = 0; at + 12 <= chunk.length; at += 4 + chunk.readInt32BE(at)) {
      const length = chunk.readInt32BE(at);
      if (length < 8) return false;
      if (chunk.readInt32BE(at + 8) !== ZOOKEEPER_OPERATIONS[operation]) continue;
      if (containing === undefined || chunk.subarray(at, at + 4 + length).includes(containing)) return true;
    }
    return false;
  };
}
