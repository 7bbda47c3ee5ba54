/**
 * A wall clock that can be set while its processes run (libfaketime, Linux). Time goes on normally from the offset;
 * the monotonic clock is left alone.
 */
export interface ServerClock extends Disposable {
  /** Sets the clock to this many milliseconds ahead of the real one; negative is behind. */
  set(offset: number): void;
  /** For a process to live by this clock. */
  readonly env: Readonly<Record<string, string>>;
}

/** Needs libfaketime: `apt-get install libfaketime`. */
export function fakeClock(_offset = 0): ServerClock {
  throw new Error('not written yet');
}
