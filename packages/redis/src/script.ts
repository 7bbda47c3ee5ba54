/** A Lua script, known to the servers that have run it by the hash of its text. */
export interface Script {
  /** SHA-1 of `source`, in hex. */
  readonly sha: string;
  readonly source: string;
}
