import type { Duration } from '../duration.js';
import type { LockOptions } from '../lock.js';

/** The backends that come with Holdfast; any other name is the package that brings it. */
export type KnownBackend =
  | 'memory'
  | 'sqlite'
  | 'postgres'
  | 'mysql'
  | 'mariadb'
  | 'redis'
  | 'etcd'
  | 'zookeeper';

/** What a backend is told: where its server is, its tenant, and its package's own options. */
export interface BackendSection {
  /** As for `connect(url)`. A relative SQLite path in a config file starts at that file's folder. */
  readonly url?: string | URL;
  /** Isolates tenants that share a server: 1 to 64 of `A-Z a-z 0-9 . _ -`. Default `holdfast`. */
  readonly prefix?: string;
  /** Options of the backend's package, as its documentation lists them. */
  readonly [option: string]: unknown;
}

/** What `connect()` takes as an object, and what a `holdfast.config.*` file holds. */
export interface HoldfastConfig {
  /** For editors; without effect. */
  readonly $schema?: string;
  /** Which backend: one of ours, or the package of somebody else's. Its section has the same name. */
  readonly backend: KnownBackend | `@${string}/${string}` | (string & {});
  readonly memory?: BackendSection;
  readonly sqlite?: BackendSection;
  readonly postgres?: BackendSection;
  readonly mysql?: BackendSection;
  readonly mariadb?: BackendSection;
  readonly redis?: BackendSection;
  readonly etcd?: BackendSection;
  readonly zookeeper?: BackendSection;
  /** Defaults of every acquisition. */
  readonly defaults?: LockOptions & { readonly wait?: Duration };
  /** Added to every fencing token, 0 to 2^62. A string or a number where bigints cannot be written (JSON, YAML). Default 0. */
  readonly fenceOffset?: bigint | number | string;
  /** Gives up an acquisition after this long without any answer from the backend. Default 60 s. */
  readonly unavailableAfter?: Duration;
  /** How long a single call to the backend may take. Default 5 s. */
  readonly commandTimeout?: Duration;
  /** The section of a backend from a scoped package, under the package's name. */
  readonly [scopedPackage: `@${string}/${string}`]: BackendSection | undefined;
  /** The section of a backend from an unscoped package, under the package's name. */
  readonly [holdfastPackage: `holdfast-${string}`]: BackendSection | undefined;
}

/** Where a configuration came from: named in every complaint about it. */
export interface Origin {
  /** Such as `/app/holdfast.config.yaml`, `HOLDFAST_URL`. */
  readonly label: string;
  /** Where backend packages are looked for first. Absent: the working directory. */
  readonly resolveFrom?: string;
  /** Where a relative SQLite path starts. Absent: the working directory. */
  readonly folder?: string;
}

/** A configuration before it was checked, and where it came from. */
export interface FoundConfig {
  readonly value: unknown;
  readonly origin: Origin;
}
