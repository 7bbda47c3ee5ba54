import { BackendError } from '@holdfast/core';
import { NotZooKeeperError } from './frames.js';

/** ZooKeeper's error codes that decide something here (KeeperException.Code of the server). */
export const CODE = {
  connectionLoss: -4,
  operationTimeout: -7,
  noNode: -101,
  noAuth: -102,
  nodeExists: -110,
  notEmpty: -111,
  sessionExpired: -112,
  authFailed: -115,
  sessionMoved: -118,
  requestTimeout: -122,
  throttled: -127,
} as const;

const NAMES: Readonly<Record<number, string>> = {
  [-1]: 'system error',
  [CODE.connectionLoss]: 'connection lost',
  [-5]: 'marshalling error',
  [-6]: 'unimplemented',
  [CODE.operationTimeout]: 'no answer in time',
  [-8]: 'bad arguments',
  [CODE.noNode]: 'no such node',
  [CODE.noAuth]: 'not authorised',
  [-103]: 'bad version',
  [-108]: 'ephemeral nodes have no children',
  [CODE.nodeExists]: 'the node exists',
  [CODE.notEmpty]: 'the node has children',
  [CODE.sessionExpired]: 'session expired',
  [-114]: 'invalid ACL',
  [CODE.authFailed]: 'authentication failed',
  [CODE.sessionMoved]: 'session moved to another server',
  [-119]: 'the server is read-only',
  [CODE.requestTimeout]: 'request timed out at the server',
  [-125]: 'quota exceeded',
  [CODE.throttled]: 'throttled by the server',
};

/** Asking again may help after these: nothing was refused for good. */
const TRANSIENT: ReadonlySet<number> = new Set([
  -1,
  CODE.connectionLoss,
  CODE.operationTimeout,
  CODE.noNode,
  CODE.nodeExists,
  CODE.sessionExpired,
  CODE.sessionMoved,
  -119,
  CODE.requestTimeout,
  CODE.throttled,
]);

/** A request that ZooKeeper refused, or that has no answer. `code` is ZooKeeper's own. */
export class ZooKeeperError extends Error {
  override readonly name = 'ZooKeeperError';
  readonly code: number;

  constructor(code: number, detail?: string, options?: { cause?: unknown }) {
    const what = `${NAMES[code] ?? 'unknown error'} (${code})`;
    super(detail === undefined ? what : `${what}: ${detail}`, options);
    this.code = code;
  }
}

/** True when `error` is ZooKeeper's answer with this code. */
export function hasCode(error: unknown, code: number): boolean {
  return error instanceof ZooKeeperError && error.code === code;
}

/** True when the request may have been executed all the same. */
export function isUnanswered(error: unknown): boolean {
  return (
    !(error instanceof ZooKeeperError) ||
    error.code === CODE.connectionLoss ||
    error.code === CODE.operationTimeout ||
    error.code === CODE.requestTimeout
  );
}

/** True when asking again may help; false when the server has refused for good. */
export function isTransient(error: unknown): boolean {
  if (error instanceof NotZooKeeperError) return false;
  return !(error instanceof ZooKeeperError) || TRANSIENT.has(error.code);
}

/** What core sees. `doing` completes "ZooKeeper could not …". */
export function toBackendError(error: unknown, doing: string, lockName?: string): BackendError {
  if (error instanceof BackendError) return error;
  const failure = error instanceof Error ? error : new Error(String(error));
  const about = lockName === undefined ? '' : ` lock ${JSON.stringify(lockName)}`;
  const refused = !isTransient(failure);
  return new BackendError(
    refused ? 'BACKEND_REFUSED' : 'BACKEND_UNAVAILABLE',
    `ZooKeeper could not ${doing}${about}: ${describe(failure)}${adviceFor(failure)}`,
    { cause: failure.cause ?? failure, ...(lockName === undefined ? {} : { lockName }) },
  );
}

function adviceFor(error: Error): string {
  if (error instanceof NotZooKeeperError) return '; check the port';
  const code = error instanceof ZooKeeperError ? error.code : 0;
  if (code === CODE.noAuth) return '; check the user, the password and the ACLs of the nodes';
  if (code === CODE.authFailed) return '; check the authentication scheme that the server allows';
  return '';
}

/** A lost connection alone says little: what ended it says more. */
function describe(error: Error): string {
  return error.cause instanceof Error && error.cause.message !== ''
    ? `${error.message}: ${error.cause.message}`
    : error.message;
}
