/** From a test to its worker. */
export interface Call {
  readonly id: number;
  readonly command: string;
  readonly argument: unknown;
}

/** From a worker to its test. Sent with the advanced serialization: tokens are bigints. */
export type Answer =
  | { readonly type: 'ready' }
  | { readonly type: 'result'; readonly id: number; readonly value: unknown }
  | { readonly type: 'error'; readonly id: number; readonly error: ErrorText }
  | { readonly type: 'event'; readonly name: string; readonly value: unknown };

export interface ErrorText {
  readonly name: string;
  readonly message: string;
  readonly code: unknown;
  readonly stack: string | undefined;
}

/** The command that every worker has: a busy loop. Its answer is sent before the loop begins. */
export const BLOCK = 'testbed:block';
