/** The stable code of each error that Holdfast raises. */
export type HoldfastErrorCode =
  | 'LOCK_TIMEOUT'
  | 'LOCK_LOST'
  | 'BACKEND_UNAVAILABLE'
  | 'BACKEND_REFUSED'
  | 'LOCKS_CLOSED'
  | 'INVALID_ARGUMENT'
  | 'CONFIG'
  | 'UNSUPPORTED'
  | 'STALE_TOKEN'
  | 'MISSING_PACKAGE';

const BRAND = Symbol.for('holdfast.error');

/** What every Holdfast error may carry. */
export interface HoldfastErrorOptions {
  /** The lock that the error is about. */
  readonly lockName?: string | undefined;
  /** What led to it: for backend errors, the client library's own error. */
  readonly cause?: unknown;
}

/** The root of all errors of this library. Test for it with {@link isHoldfastError}, which works across duplicate installs. */
export class HoldfastError extends Error {
  override readonly name: string = 'HoldfastError';
  /** A stable code: compare this, never the message. */
  readonly code: HoldfastErrorCode;
  /** The lock that the error is about, where there is one. */
  readonly lockName?: string;

  constructor(code: HoldfastErrorCode, message: string, options: HoldfastErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    if (options.lockName !== undefined) this.lockName = options.lockName;
    Object.defineProperty(this, BRAND, { value: true });
  }
}

/** True for an error of this library, whichever copy of it made the error; with `code`, only for that code. */
export function isHoldfastError(error: unknown, code?: HoldfastErrorCode): error is HoldfastError {
  return (
    typeof error === 'object' &&
    error !== null &&
    (error as Record<symbol, unknown>)[BRAND] === true &&
    (code === undefined || (error as HoldfastError).code === code)
  );
}

/** Who is known to hold a lock that was waited for. */
export interface HolderInfo {
  readonly owner: string;
  readonly since?: Date;
}

/** `wait` ran out while others held the lock or waited for it. */
export class LockTimeoutError extends HoldfastError {
  override readonly name = 'LockTimeoutError';
  /** Who held the lock at the last answer, if the backend said. */
  readonly holder?: HolderInfo;

  constructor(lockName: string, waited: number, holder?: HolderInfo, options: { cause?: unknown } = {}) {
    const at = holder?.since;
    // Built in a timer: a date that is none must not throw there.
    const since = at === undefined || Number.isNaN(at.getTime()) ? '' : ` since ${at.toISOString()}`;
    const who =
      holder === undefined
        ? 'others hold it or wait for it'
        : `held by ${JSON.stringify(holder.owner)}${since}`;
    super(
      'LOCK_TIMEOUT',
      `lock ${JSON.stringify(lockName)} was not free within ${Math.round(waited)} ms: ${who}`,
      {
        lockName,
        cause: options.cause,
      },
    );
    if (holder !== undefined) this.holder = holder;
  }
}

/**
 * Why a lock was lost: `expired` (no answer in time), `superseded` (the backend says that it is not ours),
 * `forced` (the backend left a mark that somebody forced it), `session` (the backend's session ended),
 * `max-hold` (the hold reached its `maxHold`).
 */
export type LostReason = 'expired' | 'superseded' | 'forced' | 'session' | 'max-hold';

const LOST: Readonly<Record<LostReason, string>> = {
  expired: 'no renewal was confirmed before its validity ran out',
  superseded: 'the backend says that it is no longer ours',
  forced: 'somebody released it by force',
  session: "the backend's session has ended",
  'max-hold': 'it reached its maxHold',
};

/** The lock is no longer ours, or no longer provably so. The work should stop; what it wrote needs fencing to be safe. */
export class LockLostError extends HoldfastError {
  override readonly name = 'LockLostError';
  readonly reason: LostReason;

  constructor(lockName: string, reason: LostReason, options: { cause?: unknown; detail?: string } = {}) {
    super('LOCK_LOST', `lock ${JSON.stringify(lockName)} was lost: ${options.detail ?? LOST[reason]}`, {
      lockName,
      cause: options.cause,
    });
    this.reason = reason;
  }
}

/**
 * The backend cannot be reached (`BACKEND_UNAVAILABLE`) or said no (`BACKEND_REFUSED`).
 * `cause` is the client library's own error.
 */
export class BackendError extends HoldfastError {
  override readonly name = 'BackendError';
  declare readonly code: 'BACKEND_UNAVAILABLE' | 'BACKEND_REFUSED';
  /** True when asking again may help: then core retries until the caller's deadline. False fails at once. */
  readonly transient: boolean;

  constructor(
    code: 'BACKEND_UNAVAILABLE' | 'BACKEND_REFUSED',
    message: string,
    options: HoldfastErrorOptions & { readonly transient?: boolean } = {},
  ) {
    super(code, message, options);
    this.transient = options.transient ?? code === 'BACKEND_UNAVAILABLE';
  }
}

/** Used after `close()`, or closed while waiting. */
export class LocksClosedError extends HoldfastError {
  override readonly name = 'LocksClosedError';

  constructor(lockName?: string) {
    const what = lockName === undefined ? '' : ` (lock ${JSON.stringify(lockName)})`;
    super('LOCKS_CLOSED', `these locks are closed${what}: open new ones with connect() or createLocks()`, {
      lockName,
    });
  }
}

/** A caller's argument is not what is allowed. Raised before anything is sent. */
export class InvalidArgumentError extends HoldfastError {
  override readonly name = 'InvalidArgumentError';
  /** The argument's name, such as `ttl`. */
  readonly argument: string;

  constructor(argument: string, value: unknown, allowed: string, options: HoldfastErrorOptions = {}) {
    super('INVALID_ARGUMENT', `${argument} is ${show(value)}; allowed: ${allowed}`, options);
    this.argument = argument;
  }
}

/** The configuration cannot be used: names the file or variable, the path inside it and what is allowed. */
export class ConfigError extends HoldfastError {
  override readonly name = 'ConfigError';

  constructor(message: string, options: { cause?: unknown } = {}) {
    super('CONFIG', message, options);
  }
}

/** The backend declares that it cannot do this. */
export class UnsupportedError extends HoldfastError {
  override readonly name = 'UnsupportedError';

  constructor(message: string, options: HoldfastErrorOptions = {}) {
    super('UNSUPPORTED', message, options);
  }
}

/** A guard refused a token that is older than one it has seen. */
export class StaleTokenError extends HoldfastError {
  override readonly name = 'StaleTokenError';
  readonly token: bigint;
  /** The newest token that the guarded resource has seen, where known. */
  readonly newest?: bigint;

  constructor(resource: string, token: bigint, newest?: bigint, options: { cause?: unknown } = {}) {
    const seen = newest === undefined ? 'a newer one was seen' : `${newest} was seen`;
    super(
      'STALE_TOKEN',
      `token ${token} is stale for ${JSON.stringify(resource)}: ${seen}; a later holder has written`,
      options,
    );
    this.token = token;
    if (newest !== undefined) this.newest = newest;
  }
}

/** A backend's package or driver is not installed; the message has the command that installs it. */
export class MissingPackageError extends HoldfastError {
  override readonly name = 'MissingPackageError';
  readonly packageName: string;

  constructor(packageName: string, purpose: string, options: { cause?: unknown } = {}) {
    super(
      'MISSING_PACKAGE',
      `${purpose} needs the package ${packageName}: npm install ${packageName}`,
      options,
    );
    this.packageName = packageName;
  }
}

function show(value: unknown): string {
  if (typeof value === 'string') {
    const text = JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
    return value.length > 80 ? `${text} (${value.length} characters)` : text;
  }
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object';
  return String(value);
}
