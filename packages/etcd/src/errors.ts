import { BackendError } from '@holdfast/core';

/**
 * What a client's error means for a request:
 * - `away`: no answer that says whether it was applied. Another endpoint, or the same one later, may do better.
 * - `full`, `busy`: the server refuses it for now.
 * - `stale-auth`: the auth token has expired; a new one helps.
 * - `lease-gone`, `lease-exists`: answers about a lease.
 * - `refused`: no, and asking again will not help.
 */
export type Failure = 'away' | 'full' | 'busy' | 'stale-auth' | 'lease-gone' | 'lease-exists' | 'refused';

/**
 * etcd3 1.1.2 turns gRPC's errors into classes of its own and drops their code, while errors of streams keep it. The
 * text has both the code and the server's words, whichever copy of whichever client made it.
 */
const TEXTS: readonly (readonly [RegExp, Failure])[] = [
  [/requested lease not found/, 'lease-gone'],
  [/lease already exists/, 'lease-exists'],
  [/database space exceeded/, 'full'],
  [/too many requests/, 'busy'],
  [/client was already closed/, 'refused'],
  [/invalid auth token|revision of auth store is old/, 'stale-auth'],
  [/certificate|SSL routines|EPROTO|wrong version number|ssl3_|alert (?:unknown ca|bad)/i, 'refused'],
];

/** gRPC's status codes with which etcd refuses a request for good. */
const REFUSALS = new Set([3, 5, 6, 7, 9, 11, 12, 16]);

export function failureOf(error: unknown): Failure {
  const text = textOf(error);
  for (const [pattern, failure] of TEXTS) if (pattern.test(text)) return failure;
  const code = (error as { code?: unknown } | null)?.code ?? Number(/\b(\d{1,2}) [A-Z_]+:/.exec(text)?.[1]);
  return typeof code === 'number' && REFUSALS.has(code) ? 'refused' : 'away';
}

/** Turns the client's error into ours, which says what to do. The client's is its cause. */
export function toBackendError(what: string, error: unknown): BackendError {
  if (error instanceof BackendError) return error;
  const failure = failureOf(error);
  const said = textOf(error);
  const options = { cause: error };
  switch (failure) {
    case 'refused':
      return new BackendError('BACKEND_REFUSED', `etcd refused to ${what}: ${said}`, options);
    case 'full':
      return new BackendError(
        'BACKEND_REFUSED',
        `etcd refused to ${what}: ${said}; compact and defragment it, then disarm the alarm (etcdctl alarm disarm)`,
        { ...options, transient: true },
      );
    default:
      return new BackendError('BACKEND_UNAVAILABLE', `etcd could not ${what}: ${said}`, options);
  }
}

/** The server spoke something that is not gRPC: told apart only while connecting, since a cut frame looks the same. */
export function speaksSomethingElse(error: unknown): boolean {
  return /protocol error|ERR_HTTP2_ERROR|Parse Error|bad response|unexpected HTTP/i.test(textOf(error));
}

/** A member that hangs up on the first words; gRPC tells no reason where the member gave none. */
const HUNG_UP =
  /disconnected before secure TLS|wrong version number|ECONNRESET|EPIPE|Last error: Failed to connect \(/i;

/**
 * What a failure to connect tells of TLS, for the end of a message. As above, while connecting alone: later a member that
 * goes down looks the same.
 *
 * @param tls whether we spoke it
 */
export function tlsHint(error: unknown, tls: boolean): string {
  if (!HUNG_UP.test(textOf(error))) return '';
  return tls
    ? '; it hung up at once: it seems not to speak TLS (then the URL begins with etcd or http, not with etcds or https), or goes down'
    : '; it hung up at once: it seems to speak TLS (then the URL begins with etcds or https, not with etcd or http), or goes down';
}

/** No answer within the time that one request may take. */
export class UnansweredError extends Error {
  override readonly name = 'UnansweredError';

  constructor(endpoint: string, timeout: number) {
    super(`${endpoint} did not answer within ${Math.round(timeout)} ms`);
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
