import type { BackendError, Clock } from '@holdfast/core';
import type { Client } from './client.js';
import type { Confirmation, Confirmed, Link } from './link.js';
import type { Script } from './script.js';

/** Where the keys are: one server, the master that Sentinel names, or the nodes of a cluster. */
export interface Servers {
  /** What replicates here does so behind the client's back: a failover may lose the last grants. */
  readonly replicates: boolean;
  /** Connects and checks; rejects with what stood in the way after `limit` ms. */
  open(limit: number): Promise<void>;
  /** Runs a script where its keys are. All keys are in one slot. */
  run(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
  /** As `run`, and says how many replicas have it. */
  runConfirmed(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    confirmation: Confirmation,
  ): Promise<Confirmed>;
  /** One link for each server that holds keys of its own. */
  masters(): Promise<readonly Link[]>;
  /** The link that commands on this key take at present. */
  linkOf(key: string): Link;
  /** A client for a subscription: any server will do. */
  dialSubscriber(): Client;
  close(): void;
}

/** What the servers need from the backend. */
export interface ServersHost {
  readonly clock: Clock;
  /** ms within which a server must answer. */
  readonly patience: number;
  /** A connection was lost or could not be made. */
  onDown(error: BackendError): void;
  /** A connection is ready (again). */
  onReady(): void;
}
