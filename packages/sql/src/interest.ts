/** Whether somebody still wants the answer to an attempt. */
export class Interest {
  #lost = false;
  #controller: AbortController | undefined;

  get lost(): boolean {
    return this.#lost;
  }

  /** Aborts when it is lost. Made when it is asked for, which is seldom: Node is slow to make one. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#lost) this.#controller.abort();
    return this.#controller.signal;
  }

  lose(): void {
    this.#lost = true;
    this.#controller?.abort();
  }
}
