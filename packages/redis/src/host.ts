import { type BackendHost, systemClock } from '@holdfast/core';

/** Without a host (a backend used by itself). */
export const ALONE: BackendHost = {
  clock: systemClock,
  commandTimeout: 2000,
  lost: () => undefined,
  report: () => undefined,
};

/**
 * How long the tombstone of a claim lives that was given up with a request unanswered, ms: such a request may sit in
 * a buffer on the way for as long as TCP and proxies keep trying.
 */
export const TOMBSTONE = 120_000;
