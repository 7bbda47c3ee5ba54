import type { LockBackend } from '@holdfast/core';

/** What a backend tells the suite about itself. */
export interface ConformanceOptions {
  /**
   * Makes a new backend: another instance on the same server, in the tenant that the prefix names. Called several
   * times for each case; the suite opens what it makes and closes it.
   */
  create(context: { readonly prefix: string }): LockBackend | Promise<LockBackend>;
  /**
   * How another process makes the same backend. Needed where `capabilities.crossProcess` is declared; the suite then
   * starts real processes, kills, stops and continues them. Without it there are no cases across processes.
   *
   * A function is asked when a case runs, so that the server may be started in a `beforeAll`.
   */
  readonly child?: ChildSpec | (() => ChildSpec);
  /** Faults of the server itself. With them there are cases for an outage and a restart; they run alone, at the end. */
  readonly faults?: ServerFaults;
  /** Only these guarantees, by name. Default: all. */
  readonly only?: readonly string[];
}

/** How a child process of the suite makes the backend. */
export type ChildSpec =
  | {
      /** For `connect()`; the suite adds `prefix`. The backend's package is resolved from the working directory. */
      readonly url: string;
    }
  | {
      /** A module that Node can import: an absolute path or a `file:` URL. */
      readonly module: string;
      /** Its export: a function like {@link ConformanceOptions.create}. Default `create`. */
      readonly export?: string;
      /** Given to the function besides the prefix. JSON. */
      readonly options?: Readonly<Record<string, unknown>>;
    };

/** Faults of the server, as the backend's own tests can cause them. */
export interface ServerFaults {
  /** The server goes away; resolves when it is unreachable. What it stored may survive or not. */
  stop(): Promise<void>;
  /** The server comes back at the same address; resolves when it answers. */
  start(): Promise<void>;
}
