import { BackendError, type HoldfastErrorOptions, isHoldfastError } from '@holdfast/core';

/**
 * What an error of the server or of the connection means.
 *
 * - `refused`: the server said no and will say no again.
 * - `not-now`: the server said no for a reason that passes; asking again may help.
 * - `unavailable`: no usable answer; the request may have been applied.
 */
type Meaning = 'refused' | 'not-now' | 'unavailable';

/** Looked for anywhere in the message: Redis 6 wraps what a script met in a message of its own. */
const BY_MESSAGE: readonly (readonly [RegExp, Meaning])[] = [
  [/\b(WRONGPASS|NOAUTH|NOPERM|NOPROTO|WRONGTYPE)\b/, 'refused'],
  [/invalid (username-password|password)|without any password configured/i, 'refused'],
  [/can't run this command|has no permissions|this user has no/i, 'refused'],
  [/DB index is out of range|invalid DB index|SELECT is not allowed/i, 'refused'],
  [/unknown command|unknown subcommand/i, 'refused'],
  [/Protocol error|unexpected (character|type)/i, 'refused'],
  [/cluster support disabled/i, 'refused'],
  [/\bREADONLY\b/, 'not-now'],
  [/\b(MISCONF|NOREPLICAS|OOM|TRYAGAIN|GONE)\b/, 'not-now'],
  [/max number of clients/i, 'not-now'],
  [/\b(LOADING|CLUSTERDOWN|MASTERDOWN|MOVED|ASK|BUSY|NOTREADY)\b/, 'unavailable'],
];

/** Node's codes for TLS that will fail the same way again. */
const TLS_REFUSAL =
  /^(ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(GET|VERIFY|DECRYPT)_|HOSTNAME_MISMATCH|EPROTO$)/;

/** A reply of the server, as opposed to a failure of the connection: then the request was answered. */
export function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

export function isReadOnly(error: unknown): boolean {
  return isReply(error) && /\bREADONLY\b/.test(error.message);
}

/** The client's or the server's error in our terms, with itself as the cause. */
export function toBackendError(error: unknown, options: HoldfastErrorOptions = {}): BackendError {
  if (isBackendError(error)) return about(error, options);
  const cause = withoutSecrets(error);
  const text = cause.message;
  const meaning = meaningOf(cause);
  const lock = options.lockName === undefined ? '' : ` for lock ${JSON.stringify(options.lockName)}`;
  if (meaning === 'unavailable') {
    return new BackendError('BACKEND_UNAVAILABLE', `Redis did not answer${lock}: ${text}`, {
      ...options,
      cause,
    });
  }
  return new BackendError('BACKEND_REFUSED', `Redis refused${lock}: ${text}`, {
    ...options,
    cause,
    transient: meaning === 'not-now',
  });
}

function isBackendError(error: unknown): error is BackendError {
  return isHoldfastError(error, 'BACKEND_UNAVAILABLE') || isHoldfastError(error, 'BACKEND_REFUSED');
}

/** A connection's error is everybody's: for one caller it is about that caller's lock. */
function about(error: BackendError, { lockName }: HoldfastErrorOptions): BackendError {
  if (lockName === undefined || error.lockName !== undefined) return error;
  const { code, message, cause, transient } = error;
  return new BackendError(code === 'BACKEND_REFUSED' ? code : 'BACKEND_UNAVAILABLE', message, {
    lockName,
    cause,
    transient,
  });
}

function meaningOf(error: Error): Meaning {
  const code = (error as { code?: unknown }).code;
  if (typeof code === 'string' && TLS_REFUSAL.test(code)) return 'refused';
  if (error.name === 'ParserError') return 'refused';
  for (const [pattern, meaning] of BY_MESSAGE) if (pattern.test(error.message)) return meaning;
  // A reply that we do not know was meant for us: a script that this server cannot run, for one.
  return isReply(error) ? 'refused' : 'unavailable';
}

/**
 * ioredis keeps a command's arguments on its error, one log line away: for AUTH and HELLO these are the password, for
 * EVAL the text of the script.
 */
function withoutSecrets(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  const { command } = error as { command?: { name?: unknown; args?: unknown } };
  if (command === undefined) return error;
  const name = String(command.name).toLowerCase();
  if (name === 'auth' || name === 'hello') command.args = ['(hidden)'];
  if (name === 'eval' && Array.isArray(command.args)) command.args = ['(script)', ...command.args.slice(1)];
  return error;
}
