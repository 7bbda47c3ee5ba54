import type { AcquireOptions, LockHandle } from '@holdfast/core';
import type { Child } from './child.js';
import type { Instance } from './instance.js';

type Options = Omit<AcquireOptions, 'signal'>;

/** A hold of somebody else. */
export interface PartyHold {
  readonly owner: string;
  readonly fencingToken: bigint;
  readonly ttl: number;
  /** Resolves with the reason when it is told lost. */
  readonly lost: Promise<string>;
  isHeld(): Promise<boolean>;
  release(): Promise<boolean>;
}

/**
 * Somebody else who can die without a word. Where the backend crosses processes it is a real process, killed and
 * stopped; elsewhere an instance whose seam is cut.
 */
export interface Party {
  acquire(name: string, options?: Options): Promise<PartyHold>;
  /** Resolves when it waits for the name, at the `count`th time. */
  waiting(name: string, count?: number): Promise<void>;
  /** Dies: nothing is cleaned up, nothing is renewed any more. */
  die(): Promise<void>;
  /** Stands still, and does not know it. */
  pause(): void;
  /** Goes on after `pause`. */
  resume(): void;
}

/** A party in a process of its own. */
export function childParty(child: Child): Party {
  return {
    async acquire(name, options) {
      const told = await child.acquire(name, options);
      return {
        owner: told.owner,
        fencingToken: BigInt(told.fencingToken),
        ttl: told.ttl,
        lost: child.lost(told.owner),
        isHeld: () => child.isHeld(told.owner),
        release: () => child.release(told.owner),
      };
    },
    waiting: (name, count) => child.waiting(name, count),
    die: () => child.kill(),
    pause: () => child.stop(),
    resume: () => child.resume(),
  };
}

/** A party in this process, which dies and pauses by its seam. */
export function instanceParty(instance: Instance): Party {
  return {
    async acquire(name, options) {
      const hold = await instance.acquire(name, options);
      return {
        owner: hold.owner,
        fencingToken: hold.fencingToken,
        ttl: hold.ttl,
        lost: lossOf(hold),
        isHeld: async () => hold.isHeld(),
        release: () => hold.release(),
      };
    },
    async waiting(name, count) {
      await instance.event('waiting', name, count);
    },
    async die() {
      instance.seam.cut();
    },
    pause: () => instance.seam.cut(),
    resume: () => instance.seam.heal(),
  };
}

/** Resolves with the reason when the hold is told lost. */
export function lossOf(hold: LockHandle): Promise<string> {
  return new Promise((resolve) => {
    const told = (): void => resolve(String((hold.signal.reason as { reason?: string }).reason));
    if (hold.signal.aborted) told();
    else hold.signal.addEventListener('abort', told, { once: true });
  });
}
