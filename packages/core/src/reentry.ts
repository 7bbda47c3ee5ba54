import { createChainStorage } from '#platform';
import type { Hold } from './hold.js';

/** One `run` that the present call chain is inside of. */
interface Frame {
  readonly name: string;
  readonly hold: Hold;
  readonly reentrant: boolean;
  readonly outer: Frame | undefined;
  /** Work that outlives the callback is not inside any more. */
  inside: boolean;
}

/**
 * Who is inside which lock. Node has no threads, so the holder is the asynchronous call chain: what `run`'s callback
 * calls, however deep, is inside until the callback has settled.
 */
export class Reentry {
  readonly #chain = createChainStorage<Frame>();

  /**
   * The innermost `run` of that name that the caller is inside of. One whose hold was given up early is none: its caller
   * has nothing any more that it could take again.
   */
  find(name: string): { readonly hold: Hold; readonly reentrant: boolean } | undefined {
    let frame = this.#chain.getStore();
    while (frame !== undefined && !(frame.inside && frame.name === name && !frame.hold.isGivenUp)) {
      frame = frame.outer;
    }
    return frame;
  }

  /** Runs the work inside the hold. */
  async run<T>(hold: Hold, reentrant: boolean, work: () => T | Promise<T>): Promise<T> {
    const frame: Frame = {
      name: hold.claim.name,
      hold,
      reentrant,
      outer: this.#chain.getStore(),
      inside: true,
    };
    try {
      return await this.#chain.run(frame, work);
    } finally {
      frame.inside = false;
    }
  }
}
