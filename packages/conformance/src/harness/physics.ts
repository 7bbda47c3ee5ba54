import type { Capabilities } from '@holdfast/core';
import { PROMPT, TIME_FACTOR } from './time.js';

/** What a backend declares about itself, as expected values: the cases compare with these instead of skipping. */
export class Physics {
  readonly capabilities: Capabilities;

  constructor(capabilities: Capabilities) {
    this.capabilities = capabilities;
  }

  /** The smallest usable ttl, ms: for holds whose end is waited for. */
  shortTtl(): number {
    return this.effective(750 * TIME_FACTOR);
  }

  /** A ttl for holds that must live by renewal, ms: renewed soon, and not lost when a busy machine stands still. */
  liveTtl(): number {
    return this.effective(Math.max(this.shortTtl(), 2250 * TIME_FACTOR));
  }

  /** A ttl that cannot end within a case, ms: whatever happens does not happen because of it. */
  longTtl(): number {
    return this.effective(120_000 * TIME_FACTOR);
  }

  /** What `handle.ttl` must show for a ttl that was asked for: raised, rounded up, at least the session's. */
  effective(ttl: number): number {
    const { min, max, granularity } = this.capabilities.ttl;
    const raised = Math.max(ttl, min, this.capabilities.expiry === 'session' ? this.capabilities.grace : 0);
    return Math.min(granularity > 0 ? Math.ceil(raised / granularity) * granularity : raised, max);
  }

  /** The longest validity that a fresh hold of this ttl can have, ms: a session guarantees no more than itself. */
  validity(ttl: number): number {
    const { expiry, grace } = this.capabilities;
    return expiry === 'session' ? Math.min(this.effective(ttl), grace) : this.effective(ttl);
  }

  /** What is left at most, a `delay` after the request was sent: validity less its margin. */
  mostLeft(ttl: number, delay: number): number {
    // A timer of the suite may fire a millisecond early.
    return this.validity(ttl) - (this.validity(ttl) * 0.01 + 2) - delay + 2;
  }

  /** What a fresh hold has left at least, ms, on a busy machine. A session may be halfway to its next heartbeat. */
  leastLeft(ttl: number): number {
    return this.validity(ttl) / (this.capabilities.expiry === 'session' ? 8 : 2);
  }

  /** When the lock of a holder that died is free at the latest, ms after its last renewal. */
  freedAfterDeath(ttl: number): number {
    return this.effective(ttl) + PROMPT;
  }

  /** When a queue moves on past waiters that died together, at the latest, ms. */
  pastDeadWaiters(): number {
    return this.capabilities.grace + PROMPT;
  }

  /** The order in which waiters must be served, given the order in which they came: any, without fairness. */
  served<T extends string>(order: readonly T[]): readonly T[] {
    return this.capabilities.fairness === 'fifo' ? order : [...order].sort();
  }

  /** The waiters that the server knows, given who came: without fairness there is no queue to know. */
  queued(order: readonly string[]): readonly string[] {
    return this.capabilities.fairness === 'fifo' ? order : [];
  }

  /** What a server must show as left of a ttl a moment after it was set, ms. A session shows its own, shorter time. */
  atLeastLeft(ttl: number): number {
    return this.capabilities.expiry === 'session' ? 0 : ttl - this.capabilities.ttl.granularity - PROMPT;
  }

  /** Whether a `minHold` tail outlives the `close()` of one instance. In one process, the process is the session. */
  tailOutlivesClose(): boolean {
    return this.capabilities.minHold === 'server' || !this.capabilities.crossProcess;
  }
}
