import { MAX_DURATION, parseDuration } from './duration.js';
import { InvalidArgumentError } from './errors.js';
import type { AcquireOptions } from './lock.js';
import type { Capabilities } from './locks.js';
import { checkMetadata } from './names.js';

/** What an acquisition runs on: every option checked, every duration in ms. */
export interface Request {
  readonly ttl: number;
  /** The ttl was asked for, not a default: a re-entry then lengthens the hold to it. */
  readonly ttlGiven: boolean;
  readonly renew: boolean;
  readonly maxHold: number;
  readonly minHold: number;
  readonly reentrant: boolean;
  readonly metadata: string | undefined;
  readonly wait: number;
  readonly signal: AbortSignal | undefined;
}

/** The defaults of the specification. */
export const DEFAULT_REQUEST: Request = {
  ttl: 30_000,
  ttlGiven: false,
  renew: true,
  maxHold: Infinity,
  minHold: 0,
  reentrant: false,
  metadata: undefined,
  wait: Infinity,
  signal: undefined,
};

/**
 * Checks what a caller gave and lays it over the defaults.
 *
 * @throws InvalidArgumentError
 */
export function resolveRequest(options: AcquireOptions | undefined, defaults: Request): Request {
  if (options === undefined) return defaults;
  if (typeof options !== 'object' || options === null) {
    throw new InvalidArgumentError('options', options, 'an object');
  }
  const { ttl, renew, maxHold, minHold, reentrant, metadata, wait, signal } = options;
  const max = MAX_DURATION;
  if (metadata !== undefined) checkMetadata(metadata);
  if (signal !== undefined) checkSignal(signal);
  return {
    ttl: ttl === undefined ? defaults.ttl : parseDuration(ttl, 'ttl', { max }),
    ttlGiven: ttl !== undefined || defaults.ttlGiven,
    renew: checkFlag(renew, 'renew') ?? defaults.renew,
    maxHold:
      maxHold === undefined ? defaults.maxHold : parseDuration(maxHold, 'maxHold', { max, infinite: true }),
    minHold: minHold === undefined ? defaults.minHold : parseDuration(minHold, 'minHold', { max }),
    reentrant: checkFlag(reentrant, 'reentrant') ?? defaults.reentrant,
    metadata: metadata ?? defaults.metadata,
    wait: wait === undefined ? defaults.wait : parseDuration(wait, 'wait', { zero: true, infinite: true }),
    signal: signal ?? defaults.signal,
  };
}

/** The effective ttl: raised to the backend's minimum, rounded up to its grain, at most its maximum. */
export function effectiveTtl(ttl: number, { min, max, granularity }: Capabilities['ttl']): number {
  const raised = Math.max(ttl, min);
  return Math.min(granularity > 0 ? Math.ceil(raised / granularity) * granularity : raised, max);
}

function checkFlag(value: unknown, argument: string): boolean | undefined {
  if (value === undefined || typeof value === 'boolean') return value;
  throw new InvalidArgumentError(argument, value, 'true or false');
}

function checkSignal(value: unknown): void {
  if (typeof value === 'object' && value !== null && 'aborted' in value && 'addEventListener' in value)
    return;
  throw new InvalidArgumentError('signal', value, 'an AbortSignal');
}
