/** What a worker is told when it starts. */
export interface WorkerConfig {
  /** Its name in the history. */
  readonly process: string;
  readonly historyFile: string;
  readonly registers: string;
  readonly url: string;
  /** A module whose `mutate` spoils the backend (see `mutants/`). */
  readonly mutant?: string;
  readonly names: readonly string[];
  /** Callers that run side by side in this process. */
  readonly lanes: number;
  readonly seed: number;
  /** ms */
  readonly ttl: { readonly min: number; readonly max: number };
}
