import type { ServerName } from './handle.js';

/** Where a server's process finds its things: on this machine a temporary folder, in a container a fixed one. */
export interface Place {
  /** The folder of its configuration and data. */
  readonly home: string;
  /** The address to listen on: loopback, or in a container every one. */
  readonly bind: string;
  /** The address by which it reaches other servers on this machine. */
  readonly machine: string;
}

/** One server process, said once for every provider. */
export interface ProcessSpec {
  readonly server: ServerName;
  readonly name: string;
  readonly port: number;
  readonly url: string;
  /** Further ports that the process listens on. */
  readonly morePorts?: readonly number[];
  /** Written into its home before the first start: configuration and certificates. */
  readonly files?: (place: Place) => Readonly<Record<string, string>>;
  /** Program and arguments; the program is looked up on this machine, and taken as it is in a container. */
  readonly command: (place: Place) => readonly [program: string, ...args: string[]];
  readonly env?: Readonly<Record<string, string>>;
  /** Rejects until the server serves. Asked again and again during a start. */
  readonly ready: () => Promise<void>;
  /** Ends the server in its own orderly way. Default SIGTERM. */
  readonly stopSignal?: 'SIGTERM' | 'SIGINT';
  readonly local?: {
    /** The account to run as when this process is root's; its home then belongs to it. */
    readonly user?: string;
    /** Fills the home before the first start, after `files`. */
    readonly prepare?: (home: string) => Promise<void>;
  };
  readonly docker?: {
    /** Program and arguments in a container, where they differ. */
    readonly command?: (place: Place) => readonly string[];
    /** Replaces `command` where the image has an entry point of its own that must run: its arguments. */
    readonly entryPointArgs?: (place: Place) => readonly string[];
    readonly env?: Readonly<Record<string, string>>;
    /** By absolute path, for entry points that look for them. */
    readonly files?: Readonly<Record<string, string>>;
  };
}
