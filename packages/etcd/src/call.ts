/** A call of gRPC under way. */
interface Running {
  cancel(): void;
}

/** A request that can be taken back. It may be sent more than once; the last sending counts. */
export class Call {
  #running: Running | undefined;
  #cancelled = false;

  get cancelled(): boolean {
    return this.#cancelled;
  }

  /** Whoever sends it says so. */
  started(running: Running): void {
    this.#running = running;
    // It was given up while something else was awaited: an auth token.
    if (this.#cancelled) running.cancel();
  }

  cancel(): void {
    this.#cancelled = true;
    this.#running?.cancel();
  }
}
