import type { Random } from '../random/random.js';
import type { Crew, CrewMember } from './crew.js';

/**
 * A backend under chaos: its servers, what can be done to them, what must be true all the same. One file in
 * `targets/` makes one; `targets/all.ts` names them all.
 *
 * `R` is what a running target has of its own for its faults to use: server handles, proxies.
 */
export interface ChaosTarget<R extends RunningTarget = RunningTarget> {
  /** As in `--backend`. */
  readonly id: string;
  readonly description: string;
  /** False: all workers share one process, and faults that end a process make no sense. */
  readonly crossProcess: boolean;
  readonly fairness: 'fifo' | 'none';
  /** `fencing-only` where two may hold at once whatever the fault. A fault can say so for itself. */
  readonly exclusion: 'promised' | 'fencing-only';
  /** ms: the range of ttls that workers ask for. The longest is what a killed holder can block. */
  readonly ttl: { readonly min: number; readonly max: number };
  /** ms after a fault has healed within which every name that is wanted must be held again. */
  readonly recoverWithin: number;
  /** What can be done to the servers and the wire. Faults of processes are added for every target. */
  readonly faults: readonly ChaosFault<R>[];
  /** Starts the servers, for one case alone. */
  start(context: StartContext): Promise<R>;
}

/** What a target is started with. */
export interface StartContext {
  /** An empty folder that is removed after the case. */
  readonly folder: string;
  /** How many workers there will be. */
  readonly workers: number;
  /** The fault wants the servers in network namespaces of their own. */
  readonly namespaces?: boolean;
}

/** A target whose servers run. */
export interface RunningTarget {
  /** What worker number n connects to; with a proxy of its own where the faults need one. */
  url(worker: number): string;
  /**
   * What exists at the servers that the locks brought into being and must take away, by kind: keys, rows, nodes,
   * leases, connections. Counted before the workers start, and after they have gone.
   */
  leftovers(): Promise<Readonly<Record<string, number>>>;
  stop(): Promise<void>;
}

/** Something that goes wrong, and is put right again. */
export interface ChaosFault<R extends RunningTarget = RunningTarget> {
  /** As in `--fault`. */
  readonly id: string;
  readonly description: string;
  /** `worker`: it touches the one in `context.victim` alone. `everybody`: servers and the wire. */
  readonly touches: 'worker' | 'everybody';
  /** This fault may break exclusion by the specification's own words (a failover that loses a grant). */
  readonly exclusion?: 'fencing-only';
  /** Places in the queue go with what this fault deletes. */
  readonly fairness?: 'none';
  /** ms, where the target's own bound is not enough. */
  readonly recoverWithin?: number;
  /** ms between injection and healing. Default: 0.5 to 1.5 times the target's longest ttl. */
  readonly lasts?: { readonly min: number; readonly max: number };
  /** Workers get wall clocks that can be set (libfaketime). */
  readonly clocks?: boolean;
  /**
   * The servers live in network namespaces of their own. Where none can be made the fault is left out, unless it is
   * asked for by name.
   */
  readonly namespaces?: boolean;
  /** Makes it happen; what it returns puts it right. Both resolve when it is so. */
  inject(running: R, context: FaultContext): Promise<Heal>;
}

/** Puts a fault right. */
export type Heal = () => Promise<void> | void;

/** What a fault may use. */
export interface FaultContext {
  readonly random: Random;
  /** Chosen among the living. */
  readonly victim: CrewMember;
  readonly crew: Crew;
  /** ms until healing. */
  readonly lasts: number;
}
