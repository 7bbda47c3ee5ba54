import type { Runtime } from './node.js';
import type { ProcessSpec } from './spec.js';

/** A Docker engine that answers. */
export interface Engine {
  /** Containers for processes that reach each other on the loopback address. */
  runtimes(
    specs: readonly ProcessSpec[],
  ): Promise<{ readonly runtimes: readonly Runtime[]; release(): Promise<void> }>;
}

export async function findEngine(): Promise<Engine | undefined> {
  return undefined;
}
