/**
 * The record of a run: every process appends lines of JSON to a file of its own, and the files are merged by time.
 *
 * Times are milliseconds on the machine's monotonic clock, the same for every process of one host; an event's `at` is
 * read when its line is written. Fencing tokens are decimal strings, because they exceed what a JSON number carries.
 */
export type HistoryEvent = EventBase & EventBody;

/** What every event carries. */
export interface EventBase {
  /** When the line was written, ms on the monotonic clock. Never falls within one process. */
  readonly at: number;
  /** Who wrote it: unique for each process of the run, a restarted one included. */
  readonly process: string;
}

/** What an event may say. */
export type EventBody =
  | Invoke
  | Ok
  | Fail
  | Unknown
  | Queued
  | Held
  | Lost
  | FencedWrite
  | UnfencedWrite
  | Fault
  | ProcessEnd
  | Levels;

/** What a process asks for. `op` is unique within the process. */
export type Invoke = { readonly type: 'invoke'; readonly op: number } & Call;

/** The calls that a history knows. */
export type Call =
  | {
      readonly action: 'acquire';
      readonly name: string;
      /** False for one attempt that does not join the queue. */
      readonly queue: boolean;
      /** ms */
      readonly ttl: number;
      /** ms; absent for no limit. */
      readonly wait?: number;
    }
  | { readonly action: 'extend'; readonly name: string; readonly owner: string; readonly ttl: number }
  | { readonly action: 'release'; readonly name: string; readonly owner: string }
  | {
      /** A write to a fenced register that keeps no record itself; without one, its outcome may stay unknown. */
      readonly action: 'write';
      readonly name: string;
      readonly token: string;
    };

/** The call did what it was asked to do. */
export type Ok = { readonly type: 'ok'; readonly op: number } & CallResult;

/** What a successful call gave. */
export type CallResult =
  | ({ readonly action: 'acquire'; readonly owner: string; readonly token: string } & Validity)
  | ({ readonly action: 'extend' } & Validity)
  | { readonly action: 'release'; readonly released: boolean }
  | { readonly action: 'write'; readonly accepted: boolean };

/** The span in which a handle says that it is held, as seen by its holder: conservative at both ends. */
export interface Validity {
  /** ms: read after the handle said so. */
  readonly from: number;
  /** ms: a time read before the handle was asked, plus what it said remains. Not after `from` when nothing remains. */
  readonly until: number;
}

/** The call certainly did nothing that lasts. */
export interface Fail {
  readonly type: 'fail';
  readonly op: number;
  readonly reason: string;
}

/** The call may have been applied, wholly, later, or not at all. */
export interface Unknown {
  readonly type: 'unknown';
  readonly op: number;
  readonly reason: string;
}

/** The backend has answered "contended" to a waiter: it has its place. */
export interface Queued {
  readonly type: 'queued';
  readonly name: string;
  readonly owner: string;
  readonly position?: number;
}

/** The holder looked at its handle, and it said that it is held. */
export type Held = { readonly type: 'held'; readonly name: string; readonly owner: string } & Validity;

/** The holder was told that its lock is lost. */
export interface Lost {
  readonly type: 'lost';
  readonly name: string;
  readonly owner: string;
  readonly reason: string;
}

/** Written by a register that refuses tokens older than the newest it has seen. Its lines are in the order of its writes. */
export interface FencedWrite {
  readonly type: 'fenced-write';
  readonly name: string;
  readonly writer: string;
  readonly token: string;
  readonly accepted: boolean;
}

/** Written by a register that accepts everything. Its lines are in the order of its writes. */
export interface UnfencedWrite {
  readonly type: 'unfenced-write';
  readonly name: string;
  readonly writer: string;
  readonly token: string;
  /** The version that the writer had read. */
  readonly base: number;
  /** The version that the write replaced; above `base`, somebody's update is lost. */
  readonly replaced: number;
}

/** A fault begins, or heals. */
export type Fault =
  | {
      readonly type: 'fault';
      readonly phase: 'inject';
      /** Unique within the run. */
      readonly id: string;
      /** The kind of fault, such as `kill9`. */
      readonly fault: string;
      /** The processes that it touches; absent when it touches a server or the wire, hence everybody. */
      readonly touches?: readonly string[];
      /** ms after healing within which somebody must hold again. */
      readonly recoverWithin: number;
    }
  | { readonly type: 'fault'; readonly phase: 'heal'; readonly id: string };

/** A process is about to be killed, or was seen to have ended. Written by whoever watches it. */
export interface ProcessEnd {
  readonly type: 'process-end';
  readonly of: string;
  /** `killed`: written just before the signal was sent. `ended`: written after. */
  readonly how: 'killed' | 'ended';
  readonly detail?: string;
}

/** What exists: keys, rows, nodes, leases, connections, timers, listeners, by kind. */
export interface Levels {
  readonly type: 'levels';
  readonly phase: 'before' | 'after';
  /** Whose: a server, or a process. */
  readonly scope: string;
  readonly counts: Readonly<Record<string, number>>;
}
