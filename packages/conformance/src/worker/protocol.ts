import type { AcquireOptions } from '@holdfast/core';
import type { ChildSpec } from '../options.js';

/** What a child process can be told to do. Messages are JSON; a hold is known by its owner. */
export type Order =
  | { readonly op: 'open'; readonly spec: ChildSpec; readonly prefix: string }
  | { readonly op: 'acquire'; readonly name: string; readonly options: Omit<AcquireOptions, 'signal'> }
  | { readonly op: 'tryAcquire'; readonly name: string; readonly options: Omit<AcquireOptions, 'signal'> }
  | { readonly op: 'adopt'; readonly serialized: string }
  | { readonly op: 'serialize'; readonly owner: string }
  | { readonly op: 'isHeld'; readonly owner: string }
  | { readonly op: 'release'; readonly owner: string }
  /** Blocks the event loop for so long, then says at once whether the hold is believed in. */
  | { readonly op: 'block'; readonly owner: string; readonly ms: number }
  /** Takes the name again and again, and marks being inside by a file that only one may create. */
  | {
      readonly op: 'compete';
      readonly name: string;
      readonly rounds: number;
      readonly inside: string;
      readonly options: Omit<AcquireOptions, 'signal'>;
    }
  /** Starts an acquisition, and cuts the line to the parent: only the acquisition can keep the process alive. */
  | { readonly op: 'acquireAlone'; readonly name: string; readonly options: Omit<AcquireOptions, 'signal'> }
  /** Cuts the line to the parent: the process ends when nothing keeps it alive. */
  | { readonly op: 'leave' }
  | { readonly op: 'close' };

/** A hold in a child process, as it tells of it. */
export interface ToldHold {
  readonly owner: string;
  readonly fencingToken: string;
  readonly ttl: number;
}

/** What `compete` found. */
export interface Competition {
  readonly tokens: readonly string[];
  /** How often somebody else was inside too. */
  readonly overlaps: number;
}

/** Parent to child. */
export interface Request {
  readonly id: number;
  readonly order: Order;
}

/** Child to parent. */
export type Reply =
  | { readonly id: number; readonly value: unknown }
  | {
      readonly id: number;
      readonly error: { readonly name: string; readonly code?: string; readonly message: string };
    }
  | { readonly event: 'lost'; readonly owner: string; readonly reason: string }
  | { readonly event: 'waiting' | 'entered'; readonly name: string };
