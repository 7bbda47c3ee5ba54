/** A server's bytes that are not ZooKeeper's protocol. */
export class NotZooKeeperError extends Error {
  override readonly name = 'NotZooKeeperError';
}

/** No answer of ours comes near: 64 MiB. A length above it is the text of another protocol. */
const LONGEST = 64 * 1024 * 1024;

/** Cuts a stream of bytes into ZooKeeper's frames: a length of four bytes, then the message. */
export class FrameReader {
  readonly #chunks: Buffer[] = [];
  #buffered = 0;
  #needed = 4;

  /**
   * @returns the frames that `chunk` completes, each with its length in front
   * @throws NotZooKeeperError
   */
  push(chunk: Buffer): Buffer[] {
    this.#chunks.push(chunk);
    this.#buffered += chunk.length;
    if (this.#buffered < this.#needed) return [];

    const bytes = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    const frames: Buffer[] = [];
    let start = 0;
    this.#needed = 4;
    while (bytes.length - start >= 4) {
      const length = bytes.readInt32BE(start);
      if (length < 0 || length > LONGEST)
        throw new NotZooKeeperError('the answer is not in the protocol of ZooKeeper');
      const end = start + 4 + length;
      if (end > bytes.length) {
        this.#needed = 4 + length;
        break;
      }
      frames.push(bytes.subarray(start, end));
      start = end;
    }
    this.#chunks.length = 0;
    this.#buffered = bytes.length - start;
    if (this.#buffered > 0) this.#chunks.push(bytes.subarray(start));
    return frames;
  }
}
