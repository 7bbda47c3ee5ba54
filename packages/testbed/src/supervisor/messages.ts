/** What the test process asks of its supervisor. A request with an `id` is answered by it. */
export type Request =
  | { readonly type: 'spawn'; readonly id: number; readonly process: ProcessOptions }
  | { readonly type: 'signal'; readonly id: number; readonly key: number; readonly signal: NodeJS.Signals }
  /** Removed when the test process has gone, after every process. */
  | { readonly type: 'own'; readonly path: string }
  | { readonly type: 'disown'; readonly path: string }
  /** A process of somebody else's, to be killed when the test process has gone. */
  | { readonly type: 'adopt' | 'release'; readonly pid: number }
  /** An HTTP request to make when the test process has gone, such as the removal of a container. */
  | { readonly type: 'finally'; readonly key: string; readonly request: FinalRequest }
  | { readonly type: 'forget'; readonly key: string };

export interface FinalRequest {
  readonly method: string;
  readonly path: string;
  readonly socketPath?: string;
  readonly host?: string;
  readonly port?: number;
}

/** Requests that need no answer. */
export type Notice = Exclude<Request, { readonly id: number }>;

export interface ProcessOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Receives stdout and stderr, appended. */
  readonly logFile: string;
  readonly uid?: number;
  readonly gid?: number;
}

/** What the supervisor tells. `key` names a process: it is the `id` of its spawn request. */
export type Report =
  | { readonly type: 'done'; readonly id: number; readonly pid?: number }
  | { readonly type: 'failed'; readonly id: number; readonly message: string }
  | {
      readonly type: 'exited';
      readonly key: number;
      readonly code: number | null;
      readonly signal: NodeJS.Signals | null;
    };
