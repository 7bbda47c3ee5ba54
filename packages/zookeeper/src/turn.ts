/** A wake-up that may come before anybody waits for it. */
export class Turn {
  readonly #forget: (wake: () => void) => void;
  #come = false;
  #waiting: (() => void) | undefined;

  /** @param forget takes back what was to call `wake` */
  constructor(forget: (wake: () => void) => void) {
    this.#forget = forget;
  }

  readonly wake = (): void => {
    this.#come = true;
    this.#waiting?.();
  };

  /** Resolves once woken, or when `signal` aborts. */
  wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (this.#come || signal.aborted) return resolve();
      const done = (): void => {
        signal.removeEventListener('abort', done);
        this.#waiting = undefined;
        resolve();
      };
      this.#waiting = done;
      signal.addEventListener('abort', done, { once: true });
    });
  }

  /** Nobody is to wait any more. */
  cancel(): void {
    this.#forget(this.wake);
    this.wake();
  }
}
